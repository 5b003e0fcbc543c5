"""What is known of one instance: a reducer from events and refetches to changes, without any I/O."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from ..errors import OpenCodeError
from .board import Board
from .changes import Change, DirectoryFreed, DirectoryUsed, RunStatus, SessionFailed
from .records import AskRecord, SessionRecord
from .transcript import Transcript

_IDLE = {"type": "idle"}
SETTLE = 2.0
"""Seconds that a failed turn may take between its first and its second idle event (seen: up to 0.5)."""


@dataclass(frozen=True, slots=True)
class DirectorySnapshot:
    """What OpenCode answered for one directory.  Fetch the asks first, the statuses after them."""

    permissions: Sequence[dict[str, Any]] = ()
    questions: Sequence[dict[str, Any]] = ()
    statuses: Mapping[str, dict[str, Any]] = field(default_factory=dict)


class InstanceState:
    """Sessions, their status, their asks, and what their running turns said.

    Feed it every event of ``/global/event`` in order (:meth:`apply`) and, after each (re)connect, a
    refetch: ``since = state.mark()``, fetch, ``state.replace(…, since=since, gap=True)``.  What an event
    said after the mark stands against the refetch, so that the two may overlap in any way.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._board = Board()
        self._transcript = Transcript()
        self.directories: dict[str, float] = {}
        """Directories that OpenCode holds a context for, with the time (seconds) of their last event."""
        self._ending: dict[str, float | None] = {}
        """Sessions whose turn failed, with the time of its first idle event."""
        self._seq = 0
        self._synced = clock() * 1000
        # The event that last spoke of a session's record, of its status, of its being idle; and of an ask.
        self._record_seq: dict[str, int] = {}
        self._status_seq: dict[str, int] = {}
        self._idle_seq: dict[str, int] = {}
        self._ask_seq: dict[str, int] = {}
        self._handlers: dict[str, Callable[[dict[str, Any], str], list[Change]]] = {
            "session.created": self._on_session,
            "session.updated": self._on_session,
            "session.deleted": self._on_deleted,
            "session.status": self._on_status,
            "session.idle": self._on_idle,
            "session.error": self._on_error,
            "permission.asked": self._on_asked,
            "question.asked": self._on_asked,
            "permission.replied": self._on_replied,
            "question.replied": self._on_replied,
            "question.rejected": self._on_rejected,
            "message.updated": self._on_message,
            "message.removed": self._on_message_removed,
            "message.part.updated": self._on_part,
            "message.part.removed": self._on_part_removed,
            "message.part.delta": self._on_delta,
        }

    # --- reading -----------------------------------------------------------------------------

    @property
    def sessions(self) -> Mapping[str, SessionRecord]:
        return self._board.sessions

    @property
    def asks(self) -> Mapping[str, AskRecord]:
        return self._board.asks

    def status(self, session_id: str) -> RunStatus:
        """What a session is doing; what its subagents ask counts as its own asking."""
        return self._board.status(session_id)

    def error(self, session_id: str) -> SessionFailed | None:
        """How the last turn ended, where it ended badly."""
        return self._board.errors.get(session_id)

    def settling(self, session_id: str) -> bool:
        """A failed turn is not quite over: OpenCode takes a prompt now, but never answers it.  Wait."""
        since = self._ending.get(session_id)
        return since is not None and self._clock() - since < SETTLE

    def retry(self, session_id: str) -> dict[str, Any] | None:
        """``{"attempt", "message", "next"}`` while a busy session waits to call its model again."""
        running = self._board.running.get(session_id)
        return running if running is not None and running.get("type") == "retry" else None

    def pending(self, session_id: str) -> list[AskRecord]:
        """Asks to show at a session: its own and those of its subagents."""
        return self._board.pending(session_id)

    def top(self, session_id: str) -> str:
        """The session that a subagent works for in the end; itself for any other."""
        return self._board.top(session_id)

    def busy(self) -> list[str]:
        """Sessions with a running turn."""
        return [session_id for session_id in self._board.running if session_id in self._board.sessions]

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """``{"info", "parts"}`` of the messages of the last turn, as far as they are known whole."""
        return self._transcript.messages(session_id)

    # --- events ------------------------------------------------------------------------------

    def apply(self, event: Mapping[str, Any]) -> list[Change]:
        """One raw event ``{"directory", "payload": {"type", "properties"}}``; an odd one changes nothing."""
        payload = event.get("payload")
        if not isinstance(payload, dict):
            return []
        kind, properties = payload.get("type"), payload.get("properties")
        if not isinstance(kind, str) or not isinstance(properties, dict):
            return []
        self._seq += 1
        directory = event.get("directory")
        if kind == "server.instance.disposed":
            return self._free(properties.get("directory") or directory)
        changes: list[Change] = []
        if isinstance(directory, str) and directory.startswith("/"):
            if directory not in self.directories:
                changes.append(DirectoryUsed(directory))
            self.directories[directory] = self._clock()
        else:
            directory = ""
        handler = self._handlers.get(kind)
        if handler is not None:
            changes += handler(properties, directory)
        return changes

    def _of(self, properties: dict[str, Any]) -> str | None:
        """Whose event it is; ``None`` for the hidden, the deleted and the odd."""
        session_id = properties.get("sessionID")
        if not isinstance(session_id, str) or self._board.silent(session_id):
            return None
        return session_id

    def _on_session(self, properties: dict[str, Any], directory: str) -> list[Change]:
        try:
            session = SessionRecord.from_json(properties.get("info"))
        except OpenCodeError:
            return []
        self._record_seq[session.id] = self._seq
        return self._board.take(session)

    def _on_deleted(self, properties: dict[str, Any], directory: str) -> list[Change]:
        info = properties.get("info")
        session_id = properties.get("sessionID") or (info.get("id") if isinstance(info, dict) else None)
        return self._remove(session_id) if isinstance(session_id, str) else []

    def _on_status(self, properties: dict[str, Any], directory: str) -> list[Change]:
        status, session_id = properties.get("status"), self._of(properties)
        if session_id is None or not _is_status(status):
            return []
        self._status_seq[session_id] = self._seq
        if session_id in self._ending:
            if status.get("type") == "idle" and self._ending[session_id] is None:
                self._ending[session_id] = self._clock()
            elif properties.get("status") is not _IDLE:
                del self._ending[session_id]
        return self._run(session_id, status)

    def _on_idle(self, properties: dict[str, Any], directory: str) -> list[Change]:
        return self._on_status({**properties, "status": _IDLE}, directory)

    def _on_error(self, properties: dict[str, Any], directory: str) -> list[Change]:
        session_id, error = self._of(properties), properties.get("error")
        if session_id is None or not isinstance(error, dict):
            return []
        data = error.get("data")
        name = str(error.get("name") or "UnknownError")
        message = str(data.get("message") or name) if isinstance(data, dict) else name
        if name == "MessageAbortedError":  # somebody wanted it so
            return []
        if session_id in self._board.errors and "\n    at " in message:  # the same again, with a stack trace
            return []
        if session_id in self._board.running:
            self._ending[session_id] = None
        return self._board.fail(session_id, directory, name, message)

    def _on_asked(self, properties: dict[str, Any], directory: str) -> list[Change]:
        ask = AskRecord.from_json(properties, directory, int(self._clock() * 1000))
        if ask is None or self._of(properties) is None:
            return []
        self._ask_seq[ask.id] = self._seq
        return self._board.ask(ask, told=True)

    def _on_replied(self, properties: dict[str, Any], directory: str) -> list[Change]:
        ask_id, reply = properties.get("requestID"), properties.get("reply")
        if not isinstance(ask_id, str):
            return []
        return self._board.resolve(ask_id, reply if isinstance(reply, str) else "answered")

    def _on_rejected(self, properties: dict[str, Any], directory: str) -> list[Change]:
        return self._on_replied({**properties, "reply": "reject"}, directory)

    def _on_message(self, properties: dict[str, Any], directory: str) -> list[Change]:
        info = properties.get("info")
        if not isinstance(info, dict):
            return []
        session_id = self._of({"sessionID": properties.get("sessionID") or info.get("sessionID")})
        if session_id is None:
            return []
        return self._transcript.message_updated(
            session_id, info, fresh=self._fresh(session_id, info), idle=session_id not in self._board.running
        )

    def _fresh(self, session_id: str, info: dict[str, Any]) -> bool:
        """Whether a message, or its whole session, began while we listened."""
        times = info.get("time")
        made = times.get("created") if isinstance(times, dict) else None
        if isinstance(made, (int, float)) and made > self._synced:
            return True
        session = self._board.sessions.get(session_id)
        return session is not None and session.created > self._synced

    def _on_message_removed(self, properties: dict[str, Any], directory: str) -> list[Change]:
        session_id, message_id = self._of(properties), properties.get("messageID")
        if session_id is None or not isinstance(message_id, str):
            return []
        return self._transcript.message_removed(session_id, message_id)

    def _on_part(self, properties: dict[str, Any], directory: str) -> list[Change]:
        part = properties.get("part")
        if not isinstance(part, dict):
            return []
        session_id = self._of({"sessionID": properties.get("sessionID") or part.get("sessionID")})
        return self._transcript.part_updated(session_id, part) if session_id is not None else []

    def _on_part_removed(self, properties: dict[str, Any], directory: str) -> list[Change]:
        session_id = self._of(properties)
        message_id, part_id = properties.get("messageID"), properties.get("partID")
        if session_id is None or not isinstance(message_id, str) or not isinstance(part_id, str):
            return []
        return self._transcript.part_removed(session_id, message_id, part_id)

    def _on_delta(self, properties: dict[str, Any], directory: str) -> list[Change]:
        session_id = self._of(properties)
        get = properties.get
        message_id, part_id, name, text = get("messageID"), get("partID"), get("field"), get("delta")
        if session_id is None or not (
            isinstance(message_id, str)
            and isinstance(part_id, str)
            and isinstance(name, str)
            and isinstance(text, str)
        ):
            return []
        return self._transcript.delta(session_id, message_id, part_id, name, text)

    def note(self, session: SessionRecord) -> list[Change]:
        """A session as OpenCode answered it just now, ahead of its own event."""
        if self._board.gone(session.id):
            return []
        self._seq += 1
        self._record_seq[session.id] = self._seq
        return self._board.take(session)

    def note_deleted(self, session_id: str) -> list[Change]:
        """A session that was deleted just now, ahead of its own event."""
        return self._remove(session_id)

    # --- refetches ---------------------------------------------------------------------------

    def mark(self) -> int:
        """Take this before the first request of a refetch and hand it to :meth:`replace`."""
        return self._seq

    def replace(
        self,
        sessions: Iterable[SessionRecord] | None = None,
        directories: Mapping[str, DirectorySnapshot] | None = None,
        since: int = 0,
        gap: bool = False,
    ) -> list[Change]:
        """Take over a refetch.

        ``sessions``: all of them, what is not there is gone.  ``directories``: authoritative for the status
        and asks of the sessions in these, silent about others.  ``gap``: events before the mark were lost,
        or there was no stream: sessions that may have said something get a ``MessagesMissed``.
        """
        changes: list[Change] = []
        missed = dict.fromkeys(self._board.running) if gap else {}
        if gap:
            self._synced = self._clock() * 1000
        if sessions is not None:
            listed: set[str] = set()
            for session in sessions:
                listed.add(session.id)
                if self._record_seq.get(session.id, 0) > since:
                    continue
                known = self._board.sessions.get(session.id)
                if gap and known is not None and known.updated != session.updated:
                    missed[session.id] = None
                changes += self._board.take(session)
            changes += self._drop_unlisted(listed, since)
        for directory, snapshot in (directories or {}).items():
            changes += self._replace_directory(directory, snapshot, since)
        if gap:
            missed.update(dict.fromkeys(self._board.running))
            known_sessions = self._board.sessions
            changes += self._transcript.gap([identity for identity in missed if identity in known_sessions])
        return changes

    def _drop_unlisted(self, listed: set[str], since: int) -> list[Change]:
        changes: list[Change] = []
        for session_id in [*self._board.sessions, *self._board.hidden()]:
            if session_id not in listed and self._record_seq.get(session_id, 0) <= since:
                changes += self._remove(session_id)
        # A session that was deleted while it ran stays busy and asking in OpenCode for ever.
        for session_id in [*self._board.running]:
            if session_id not in self._board.sessions and self._status_seq.get(session_id, 0) <= since:
                del self._board.running[session_id]
        for ask in [*self._board.asks.values()]:
            if ask.session_id not in self._board.sessions and self._ask_seq.get(ask.id, 0) <= since:
                changes += self._board.resolve(ask.id, None)
        return changes

    def _replace_directory(self, directory: str, snapshot: DirectorySnapshot, since: int) -> list[Change]:
        board = self._board
        changes: list[Change] = []
        if directory not in self.directories:
            self.directories[directory] = self._clock()
            changes.append(DirectoryUsed(directory))
        for session in [*board.sessions.values()]:
            if session.directory == directory and self._status_seq.get(session.id, 0) <= since:
                status = snapshot.statuses.get(session.id)
                if _is_status(status) or session.id in board.running:
                    changes += self._run(session.id, status if _is_status(status) else _IDLE)
        now = int(self._clock() * 1000)
        listed: set[str] = set()
        for body in (*snapshot.permissions, *snapshot.questions):
            ask = AskRecord.from_json(body, directory, now)
            if ask is None:
                continue
            listed.add(ask.id)
            # OpenCode keeps the asks of an aborted turn: only who runs and has not ended since can ask.
            if (
                ask.session_id in board.sessions
                and ask.session_id in board.running
                and self._idle_seq.get(ask.session_id, 0) <= since
            ):
                changes += board.ask(ask)
        for ask in [*board.asks.values()]:
            if ask.directory == directory and ask.id not in listed and self._ask_seq.get(ask.id, 0) <= since:
                changes += board.resolve(ask.id, None)
        return changes

    def fill(self, session_id: str, messages: Sequence[dict[str, Any]]) -> list[Change]:
        """The answer to ``MessagesMissed``: the newest messages of a session, as OpenCode gives them."""
        if self._board.silent(session_id):
            return []
        return self._transcript.fill(session_id, messages)

    def process_died(self) -> list[Change]:
        """The process is gone: running turns were interrupted, asks are void, no directory has a context."""
        changes = self._board.interrupt()
        self._ending.clear()
        for directory in [*self.directories]:
            changes += self._free(directory)
        self._transcript.clear()
        return changes

    # --- what both do ------------------------------------------------------------------------

    def _run(self, session_id: str, status: dict[str, Any]) -> list[Change]:
        if status.get("type") == "idle":
            self._idle_seq[session_id] = self._seq
        return self._board.run(session_id, status)

    def _remove(self, session_id: str) -> list[Change]:
        for table in (self._record_seq, self._status_seq, self._idle_seq, self._ending):
            table.pop(session_id, None)
        self._transcript.forget(session_id)
        return self._board.remove(session_id)

    def _free(self, directory: Any) -> list[Change]:
        if not isinstance(directory, str) or self.directories.pop(directory, None) is None:
            return []
        return [DirectoryFreed(directory)]


def _is_status(said: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(said, dict) and isinstance(said.get("type"), str)
