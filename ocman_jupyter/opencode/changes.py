"""What the state of an instance says has changed: one small record per kind of change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .records import AskRecord, SessionRecord

RunStatus = Literal["idle", "busy", "needs_you", "error"]


@dataclass(frozen=True, slots=True)
class SessionUpdated:
    """A session is new, or says something else than before."""

    session: SessionRecord

    @property
    def session_id(self) -> str:
        return self.session.id


@dataclass(frozen=True, slots=True)
class SessionRemoved:
    session_id: str
    directory: str


@dataclass(frozen=True, slots=True)
class StatusChanged:
    session_id: str
    directory: str
    status: RunStatus


@dataclass(frozen=True, slots=True)
class SessionFailed:
    """A turn ended with an error, or a prompt was refused."""

    session_id: str
    directory: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class AskCreated:
    ask: AskRecord
    top_id: str
    """The session to show it at: the asking one, or the top ancestor of a subagent."""

    @property
    def session_id(self) -> str:
        return self.ask.session_id


@dataclass(frozen=True, slots=True)
class AskResolved:
    id: str
    session_id: str
    top_id: str
    reply: str | None
    """once, always, reject, answered; ``None`` = its turn ended without a reply."""


@dataclass(frozen=True, slots=True)
class MessageUpdated:
    """The whole message so far.  The dicts are shared: read only."""

    session_id: str
    message_id: str
    info: dict[str, Any]
    parts: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class MessageRemoved:
    session_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class MessagesMissed:
    """Part of what this session said is unknown here: fetch its newest messages and give them to ``fill``."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Delta:
    """Text to append to ``field`` of a part that was told before."""

    session_id: str
    message_id: str
    part_id: str
    field: str
    delta: str


@dataclass(frozen=True, slots=True)
class DirectoryUsed:
    """OpenCode holds a context for this directory now."""

    directory: str
    session_id: None = None


@dataclass(frozen=True, slots=True)
class DirectoryFreed:
    """OpenCode disposed the context of this directory."""

    directory: str
    session_id: None = None


Change = (
    SessionUpdated
    | SessionRemoved
    | StatusChanged
    | SessionFailed
    | AskCreated
    | AskResolved
    | MessageUpdated
    | MessageRemoved
    | MessagesMissed
    | Delta
    | DirectoryUsed
    | DirectoryFreed
)
