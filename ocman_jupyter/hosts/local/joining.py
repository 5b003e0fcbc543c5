"""Records of the domains turned into the host's: a session with its status and asks."""

from __future__ import annotations

import os
from typing import Any, Protocol

from ...opencode.foreign import milliseconds, number, text
from ...opencode.records import AskRecord, SessionRecord
from ..host import Ask, Retry, Session
from .paths import rfc3339
from .records import SessionNote


class Known(Protocol):
    """What an instance's feed knows of a session."""

    def status(self, session_id: str) -> str: ...
    def pending(self, session_id: str) -> list[AskRecord]: ...
    def record(self, session_id: str) -> SessionRecord | None: ...
    def top(self, session_id: str) -> str: ...
    def missing(self, directory: str) -> bool: ...
    def error(self, session_id: str) -> str | None: ...
    def retry(self, session_id: str) -> Retry | None: ...


def ask(record: AskRecord, known: Known) -> Ask:
    """An ask with the title that people know: that of the session they started."""
    top = known.record(known.top(record.session_id)) or known.record(record.session_id)
    return Ask.model_construct(
        id=record.id,
        kind=record.kind,
        session_id=known.top(record.session_id),
        title="" if top is None else top.title,
        permission=record.permission,
        patterns=list(record.patterns),
        always=list(record.always),
        metadata=record.metadata,
        questions=list(record.questions),
        created=rfc3339(record.created),
    )


def joined(record: SessionRecord, known: Known, repo_root: str | None) -> Session:
    """A session as faces see it."""
    status = known.status(record.id)
    if status in ("idle", "error") and known.missing(record.directory):
        status = "directory_missing"
    return Session.model_construct(
        id=record.id,
        title=record.title,
        directory=record.directory,
        repo_root=repo_root,
        status=status,
        parent_id=record.parent_id,
        created=rfc3339(record.created),
        updated=rfc3339(record.updated),
        agent=record.agent,
        model=record.model,
        cost=record.cost,
        tokens=record.tokens,
        pending=[ask(a, known) for a in known.pending(record.id)] if status == "needs_you" else [],
        error=known.error(record.id) if status == "error" else None,
        retry=known.retry(record.id),
    )


def retrying(status: dict[str, Any]) -> Retry:
    """OpenCode's status of a turn that calls its model again."""
    at = milliseconds(status.get("next"))
    return Retry(
        attempt=int(number(status.get("attempt")) or 1),
        message=text(status.get("message")) or "",
        at=None if at is None else rfc3339(at),
    )


def noted(note: SessionNote, repo_root: str | None, gone: bool) -> Session:
    """A session that ocman made, while no OpenCode runs that could tell more."""
    when = rfc3339(note.created * 1000)
    return Session(
        id=note.id,
        title=os.path.basename(note.directory),
        directory=note.directory,
        repo_root=repo_root,
        status="directory_missing" if gone else "unknown",
        parent_id=None,
        created=when,
        updated=when,
    )


def message(info: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A message as ``GET sessions/{id}/messages`` and the events give it."""
    return {"info": info, "parts": parts}
