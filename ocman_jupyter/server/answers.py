"""Shapes that only the REST API has: small envelopes around the records of the hosts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from ..hosts.host import Ask, Check, InstanceDetails, WorktreePlan


class Error(BaseModel):
    """Every answer that is not a success."""

    code: str
    message: str
    """One sentence for a person."""
    hint: str | None
    """What to do, where there is something to do."""
    details: dict[str, Any]


class Doctor(BaseModel):
    checks: list[Check]


class InstanceList(BaseModel):
    instances: list[InstanceDetails]


class Stopped(BaseModel):
    stopped: Literal[True] = True


class Planned(BaseModel):
    """The answer of a ``dry_run``: nothing was changed."""

    plan: WorktreePlan


class Deleted(BaseModel):
    removed: Literal[True] = True


class MessageList(BaseModel):
    messages: list[dict[str, Any]]
    """``{"info", "parts"}`` as OpenCode tells them, oldest first."""
    next: str | None
    """Give it as ``before`` to get the messages before these."""


class TodoList(BaseModel):
    todos: list[dict[str, Any]]


class FileList(BaseModel):
    files: list[str]
    """Relative to the session's directory, the best first."""


class Queued(BaseModel):
    queued: bool
    """It waits behind a running turn."""


class Accepted(BaseModel):
    accepted: Literal[True] = True


class Aborted(BaseModel):
    aborted: Literal[True] = True


class AskList(BaseModel):
    asks: list[Ask]


class Replied(BaseModel):
    replied: Literal[True] = True
