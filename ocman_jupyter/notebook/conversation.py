"""One session as its messages and events tell it: what a panel shows, and which of it is new."""

from __future__ import annotations

from typing import Any

from .gone import doubtful
from .states import RESTING

Json = dict[str, Any]

TURNS = 10
"""How many of the last turns are kept: a message of the user's with all that was said to it."""
MESSAGES = 60
"""How many messages are kept at most: a long turn has hundreds."""


class Conversation:
    """A session, its last messages, its todo list and what it asks.

    ``changed`` collects what is new since it was emptied last: ``"session"``, ``"todos"``, ``"asks"`` and the ids
    of messages; ``"messages"`` says that some came or went.
    """

    def __init__(self, session: Json) -> None:
        self.session = session
        self.worktree: Json | None = None
        """The worktree that it works in, once it is known."""
        self.messages: dict[str, Json] = {}
        self.todos: list[Json] = []
        self.asks: dict[str, Json] = {}
        self.removed = False
        self.resolved: dict[str, str | None] = {}
        """Asks that were answered, here or elsewhere, and how."""
        self.changed: set[str] = set()
        self.turns_ended = 0
        self._take(session)

    @property
    def id(self) -> str:
        return str(self.session["id"])

    @property
    def status(self) -> str:
        return "needs_you" if self.asks else str(self.session.get("status") or "unknown")

    @property
    def working(self) -> bool:
        """A turn is under way."""
        return self.status not in RESTING

    def load(self, session: Json, messages: list[Json] | None, todos: list[Json] | None) -> None:
        """What was read anew; ``None`` = it could not be read, and what is known stays."""
        self._take(session)
        self.changed.add("session")
        if messages is not None:
            before, self.messages = self.messages, {m["info"]["id"]: m for m in messages if _id(m)}
            self._trim()
            self.changed.add("messages")
            self.changed |= {key for key, m in self.messages.items() if before.get(key) != m}
        if todos is not None and todos != self.todos:
            self.todos = todos
            self.changed.add("todos")

    def event(self, event: Json) -> None:
        """Take what happened.  Events of other sessions are none of ours, and those of worktrees are matched."""
        kind, data = event.get("type"), event.get("data") or {}
        if kind == "worktree.changed":
            if self.worktree is not None and data.get("path") == self.worktree.get("path"):
                self.worktree = {**self.worktree, **data}
                self.changed.add("session")
            return
        if self.id not in (data.get("id"), data.get("session_id")):
            return
        if kind == "session.updated":
            self._take(data)
        elif kind == "session.status":
            news = {"status": data.get("status"), "error": data.get("error"), "retry": data.get("retry")}
            self._take({**self.session, **news}, asks=False)
        elif kind == "session.removed":
            self.removed = True
            self.changed.add("session")
        elif kind == "message.updated":
            self._message(data.get("message") or {})
        elif kind == "message.delta":
            self._delta(data)
        elif kind == "ask.created" and data.get("id"):
            self.asks[str(data["id"])] = data
            self.changed |= {"asks", "session"}
        elif kind == "ask.resolved":
            self._resolve(str(data.get("id")), data.get("reply"))

    def doubtful(self, event: Json) -> bool:
        """Whether ``event`` tells that the folder came or went, which no event told of."""
        worktrees = {} if self.worktree is None else {str(self.worktree.get("path")): self.worktree}
        return doubtful(event, [self.session], worktrees)

    def _take(self, session: Json, asks: bool = True) -> None:
        was = self.session.get("status")
        self.session = session
        self.changed.add("session")
        if asks:
            pending = {str(ask["id"]): ask for ask in session.get("pending") or [] if ask.get("id")}
            for gone in [key for key in self.asks if key not in pending]:
                self._resolve(gone, None)
            if pending.keys() != self.asks.keys():
                self.asks = pending
                self.changed.add("asks")
        if was not in RESTING and session.get("status") in RESTING:
            self.turns_ended += 1

    def _resolve(self, ask_id: str, reply: str | None) -> None:
        if self.asks.pop(ask_id, None) is not None:
            self.resolved[ask_id] = reply
            self.changed |= {"asks", "session"}

    def _message(self, message: Json) -> None:
        key = _id(message)
        if not key:
            return
        if key not in self.messages:
            first = next(iter(self.messages.values()), None)
            if first is not None and _made(message) < _made(first):
                return  # older than what is kept
            self.changed.add("messages")
        self.messages[key] = message
        self._trim()
        self.changed.add(key)
        for part in message.get("parts") or []:
            given = (part.get("state") or {}).get("input") or {}
            if part.get("tool") == "todowrite" and isinstance(given.get("todos"), list):
                self.todos = [todo for todo in given["todos"] if isinstance(todo, dict)]
                self.changed.add("todos")

    def _delta(self, data: Json) -> None:
        message = self.messages.get(str(data.get("message_id")))
        if message is None or data.get("field") != "text":
            return
        parts = [
            {**part, "text": str(part.get("text") or "") + str(data.get("delta") or "")}
            if part.get("id") == data.get("part_id")
            else part
            for part in message.get("parts") or []
        ]
        self.messages[_id(message)] = {**message, "parts": parts}
        self.changed.add(_id(message))

    def _trim(self) -> None:
        keys = list(self.messages)
        begins = [i for i, key in enumerate(keys) if self.messages[key]["info"].get("role") == "user"]
        start = begins[-TURNS] if len(begins) >= TURNS else 0
        for key in keys[: max(start, len(keys) - MESSAGES)]:
            del self.messages[key]
            self.changed.add("messages")


def unseen(text: str, deltas: str) -> str:
    """The end of ``deltas`` that ``text`` lacks: it was read while they came, and may hold their beginning."""
    for length in range(min(len(text), len(deltas)), 0, -1):
        if text.endswith(deltas[:length]):
            return deltas[length:]
    return deltas


def _id(message: Json) -> str:
    return str((message.get("info") or {}).get("id") or "")


def _made(message: Json) -> float:
    made = ((message.get("info") or {}).get("time") or {}).get("created")
    return float(made) if isinstance(made, (int, float)) else float("inf")
