"""Who does what: sessions, running turns, asks and last errors; every change of a status is told once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .changes import (
    AskCreated,
    AskResolved,
    Change,
    RunStatus,
    SessionFailed,
    SessionRemoved,
    SessionUpdated,
    StatusChanged,
)
from .records import WARM_UP_TITLE, AskRecord, SessionRecord

MAX_REMEMBERED = 10_000
"""Ids of what is gone, so that a late event or an old snapshot does not bring it back."""


class Board:
    """Sessions by id, and what each is doing.  Warm-up sessions are kept out."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionRecord] = {}
        self.running: dict[str, dict[str, Any]] = {}
        """OpenCode's status (busy or retry) of each session with a running turn."""
        self.asks: dict[str, AskRecord] = {}
        self.errors: dict[str, SessionFailed] = {}
        """How the last turn of a session ended, where it ended badly."""
        self._hidden: set[str] = set()
        self._gone: OrderedDict[str, bool] = OrderedDict()
        """Whether for good: not the ask of a turn that ended."""
        self._told: dict[str, RunStatus] = {}

    def status(self, session_id: str) -> RunStatus:
        """What a session is doing; what its subagents ask counts as its own asking."""
        if self.asks and self.pending(session_id):
            return "needs_you"
        if session_id in self.running:
            return "busy"
        return "error" if session_id in self.errors else "idle"

    def pending(self, session_id: str) -> list[AskRecord]:
        """Asks to show at a session: its own and those of its subagents."""
        return [
            ask
            for ask in self.asks.values()
            if ask.session_id == session_id or session_id in self.ancestors(ask.session_id)
        ]

    def top(self, session_id: str) -> str:
        """The session that a subagent works for in the end; itself for any other."""
        ancestors = self.ancestors(session_id)
        return ancestors[-1] if ancestors else session_id

    def ancestors(self, session_id: str) -> list[str]:
        """Whom a subagent works for, the nearest first."""
        found: list[str] = []
        session = self.sessions.get(session_id)
        while session is not None and session.parent_id and session.parent_id not in (session_id, *found):
            found.append(session.parent_id)
            session = self.sessions.get(session.parent_id)
        return found

    def silent(self, session_id: str) -> bool:
        """Nothing is told of this one: hidden or deleted."""
        return session_id in self._hidden or session_id in self._gone

    def gone(self, identity: str) -> bool:
        """Whether a session was deleted, or an ask resolved."""
        return identity in self._gone

    def hidden(self) -> list[str]:
        return [*self._hidden]

    def take(self, session: SessionRecord) -> list[Change]:
        """A session is there, and says this."""
        if session.id in self._gone:
            return []
        if session.title == WARM_UP_TITLE or session.id in self._hidden:
            self._hidden.add(session.id)
            return []
        known = self.sessions.get(session.id)
        if known == session:
            return []
        self.sessions[session.id] = session
        changes: list[Change] = [SessionUpdated(session)]
        if known is None or known.parent_id != session.parent_id:
            changes += self._settle(session.id)
        return changes

    def remove(self, session_id: str) -> list[Change]:
        """A session was deleted; its asks go with it."""
        changes: list[Change] = []
        for ask in [*self.asks.values()]:
            if ask.session_id == session_id:
                changes += self.resolve(ask.id, None)
        session = self.sessions.pop(session_id, None)
        for table in (self.running, self.errors, self._told):
            table.pop(session_id, None)
        self._hidden.discard(session_id)
        self._remember(session_id)
        if session is not None:
            changes.append(SessionRemoved(session_id, session.directory))
        return changes

    def run(self, session_id: str, status: dict[str, Any]) -> list[Change]:
        """A turn runs, or is over."""
        changes: list[Change] = []
        before = _attempt(self.running.get(session_id))
        if status.get("type") == "idle":
            self.running.pop(session_id, None)
            # An aborted turn leaves its asks behind without a reply.
            for ask in [*self.asks.values()]:
                if ask.session_id == session_id:
                    changes += self.resolve(ask.id, None, for_good=False)
        else:
            self.running[session_id] = status
            self.errors.pop(session_id, None)
        changes += self._settle(session_id)
        session = self.sessions.get(session_id)
        told = any(isinstance(change, StatusChanged) and change.session_id == session_id for change in changes)
        if session is not None and not told and _attempt(self.running.get(session_id)) != before:
            changes.append(StatusChanged(session_id, session.directory, self.status(session_id)))
        return changes

    def fail(self, session_id: str, directory: str, name: str, message: str) -> list[Change]:
        """A turn ended badly, or a prompt was refused."""
        session = self.sessions.get(session_id)
        failed = SessionFailed(session_id, session.directory if session else directory, name, message)
        self.errors[session_id] = failed
        return [failed, *self._settle(session_id)]

    def ask(self, ask: AskRecord, told: bool = False) -> list[Change]:
        """``told``: by an event.  The turn that ended before it was an older one, of which we heard late."""
        if ask.id in self.asks or (ask.id in self._gone and (self._gone[ask.id] or not told)):
            return []
        self._gone.pop(ask.id, None)
        self.asks[ask.id] = ask
        return [AskCreated(ask, self.top(ask.session_id)), *self._settle(ask.session_id)]

    def resolve(self, ask_id: str, reply: str | None, for_good: bool = True) -> list[Change]:
        """An ask was answered (``reply``), or nobody waits for its answer any more."""
        self._remember(ask_id, for_good)
        ask = self.asks.pop(ask_id, None)
        if ask is None:
            return []
        resolved = AskResolved(ask_id, ask.session_id, self.top(ask.session_id), reply)
        return [resolved, *self._settle(ask.session_id)]

    def interrupt(self) -> list[Change]:
        """The process is gone: nobody waits for an answer, and running turns have no end."""
        changes: list[Change] = []
        running = [*self.running]
        self.running.clear()
        for ask_id in [*self.asks]:
            changes += self.resolve(ask_id, None)
        for session_id in running:
            if session_id in self.sessions:
                changes += self.fail(
                    session_id, "", "Interrupted", "OpenCode ended in the middle of this turn."
                )
        return changes

    def _settle(self, session_id: str) -> list[Change]:
        """Tell the status of a session and of those it works for, where it is not what was told last."""
        changes: list[Change] = []
        for identity in (session_id, *self.ancestors(session_id)):
            session = self.sessions.get(identity)
            if session is None:
                continue
            status = self.status(identity)
            if self._told.get(identity, "idle") != status:
                self._told[identity] = status
                changes.append(StatusChanged(identity, session.directory, status))
        return changes

    def _remember(self, identity: str, for_good: bool = True) -> None:
        self._gone[identity] = for_good
        if len(self._gone) > MAX_REMEMBERED:
            self._gone.popitem(last=False)


def _attempt(status: dict[str, Any] | None) -> Any:
    """Which attempt to call the model is waited for; ``None`` when none is."""
    return status.get("attempt") if status is not None and status.get("type") == "retry" else None
