"""The records in which the package speaks of OpenCode: sessions, asks, places, pages of messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..errors import OpenCodeError
from .foreign import an_object, milliseconds, number, numbers, objects, text, texts

WARM_UP_TITLE = "ocman warm-up (deletes itself)"
"""Title of the throw-away sessions of warmup.py; nothing of them is ever shown."""


RULE = ("permission", "pattern", "action")
"""What a rule of a session says."""


class Place(NamedTuple):
    """Where OpenCode says that a directory is."""

    worktree: str
    """Top of the checkout that holds it; ``/`` outside of git."""
    directory: str


class Page(NamedTuple):
    """Some messages of a session, oldest first, and the cursor of the older ones (``None`` = no more)."""

    messages: list[dict[str, Any]]
    next: str | None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session as OpenCode keeps it.  Times are milliseconds since 1970."""

    id: str
    title: str
    directory: str
    project_id: str = ""
    parent_id: str | None = None
    """The session that called this one as a subagent."""
    created: int = 0
    updated: int = 0
    agent: str | None = None
    model: str | None = None
    """``provider/model``."""
    cost: float = 0.0
    tokens: dict[str, Any] = field(default_factory=dict)
    permission: list[dict[str, Any]] = field(default_factory=list)
    """Session rules, in written order."""
    archived: int | None = None

    @classmethod
    def from_json(cls, body: Any) -> SessionRecord:
        """The record of OpenCode's session object.

        Raises ``OpenCodeError`` without an id, or without a directory that could be one.
        """
        if not isinstance(body, dict):
            raise OpenCodeError("OpenCode answered without a session.")
        get = body.get
        identity, directory = text(get("id")), text(get("directory"))
        if not identity or not directory or not directory.startswith("/") or "\0" in directory:
            raise OpenCodeError("OpenCode answered with a session that has no id or no directory.")
        time = an_object(get("time"))
        return cls(
            identity,
            text(get("title")) or "",
            directory,
            text(get("projectID")) or "",
            text(get("parentID")),
            milliseconds(time.get("created")) or 0,
            milliseconds(time.get("updated")) or 0,
            text(get("agent")),
            model_name(get("model")),
            number(get("cost")) or 0.0,
            numbers(get("tokens")),
            [rule for rule in objects(get("permission")) if all(text(rule.get(key)) for key in RULE)],
            milliseconds(time.get("archived")),
        )


@dataclass(frozen=True, slots=True)
class AskRecord:
    """A session waits for a permission or for answers."""

    id: str
    kind: Literal["permission", "question"]
    session_id: str
    """Who asks: maybe a subagent's session."""
    directory: str
    created: int
    """Milliseconds since 1970."""
    permission: str | None = None
    patterns: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    """What the reply "always" would allow from then on."""
    metadata: dict[str, Any] = field(default_factory=dict)
    questions: tuple[dict[str, Any], ...] = ()

    @classmethod
    def from_json(cls, body: Any, directory: str, now: int) -> AskRecord | None:
        """The record of a permission or question request; ``None`` where it is not understood."""
        if not isinstance(body, dict):
            return None
        identity, session_id = text(body.get("id")), text(body.get("sessionID"))
        if not identity or not session_id:
            return None
        created = made_at(identity, now)
        questions = body.get("questions")
        if isinstance(questions, list):
            return cls(
                identity,
                "question",
                session_id,
                directory,
                created,
                questions=tuple(_question(item) for item in objects(questions)),
            )
        return cls(
            identity,
            "permission",
            session_id,
            directory,
            created,
            text(body.get("permission")),
            tuple(texts(body.get("patterns"))),
            tuple(texts(body.get("always"))),
            an_object(body.get("metadata")),
        )


def _question(body: dict[str, Any]) -> dict[str, Any]:
    """A question that can be shown and answered."""
    return {
        **body,
        "question": text(body.get("question")) or "",
        "header": text(body.get("header")) or "",
        "options": [
            {**option, "description": text(option.get("description")) or ""}
            for option in objects(body.get("options"))
            if text(option.get("label"))
        ],
    }


def made_at(identity: str, now: int) -> int:
    """When an ascending id of OpenCode (``per_22c2…``) was made, in milliseconds since 1970.

    Its first 12 hex digits are the low 48 bits of ``time << 12 | counter``.  ``now`` supplies the high bits,
    and is the answer where the id says something implausible.
    """
    try:
        low = int(identity.partition("_")[2][:12], 16) >> 12
    except ValueError:
        return now
    span = 1 << 36
    made = (now & ~(span - 1)) | low
    if made > now + 60_000:
        made -= span
    return made if 0 <= now - made < 90 * 86_400_000 or 0 < made - now <= 60_000 else now


def model_name(model: Any) -> str | None:
    """``provider/model`` of OpenCode's model object: a session says ``id``, a message ``modelID``."""
    if not isinstance(model, dict):
        return None
    provider, name = text(model.get("providerID")), text(model.get("id")) or text(model.get("modelID"))
    return f"{provider}/{name}" if provider and name else None
