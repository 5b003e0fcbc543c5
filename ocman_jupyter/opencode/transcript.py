"""What the running turns have said so far: messages and their parts, from events and refetches, bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .changes import Change, Delta, MessageRemoved, MessagesMissed, MessageUpdated
from .foreign import an_object

MAX_SESSIONS = 64
MAX_MESSAGES = 200
"""Of one turn."""
MAX_STREAMED = 2_000_000
"""Characters of one part that are put together here; what comes beyond is only passed on."""

_PROGRESS = {"pending": 0, "running": 1, "completed": 2, "error": 2}


class _Part:
    __slots__ = ("body", "chunks", "size", "told", "touched")

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.chunks: dict[str, list[str]] = {}
        self.size = 0
        self.told = False
        """It was part of a message that was told."""
        self.touched = True

    def append(self, field: str, text: str) -> bool:
        """False when the part has become too long to be kept."""
        if self.size + len(text) > MAX_STREAMED:
            return False
        self.size += len(text)
        self.chunks.setdefault(field, []).append(text)
        return True

    def joined(self) -> dict[str, Any]:
        """The part with all that was streamed; what was handed out before is never changed."""
        body = self.body or {}
        if self.chunks:
            body = dict(body)
            for field, chunks in self.chunks.items():
                before = body.get(field)
                body[field] = (before if isinstance(before, str) else "") + "".join(chunks)
            self.chunks = {}
            if self.body is not None:
                self.body = body
            else:
                self.chunks = {field: [body[field]] for field in body}
        return body

    def take(self, body: dict[str, Any]) -> None:
        self.body = body
        self.chunks = {}
        self.size = 0


class _Message:
    __slots__ = ("info", "parts", "whole", "touched")

    def __init__(self, whole: bool = False) -> None:
        self.info: dict[str, Any] | None = None
        self.parts: dict[str, _Part] = {}
        self.whole = whole
        """All of its parts passed by here."""
        self.touched = True


class _Turn:
    __slots__ = ("messages", "removed", "missed")

    def __init__(self) -> None:
        self.messages: OrderedDict[str, _Message] = OrderedDict()
        self.removed: set[str] = set()
        self.missed = False
        """A refetch was asked for and has not come."""


class Transcript:
    """The messages of each session's last turn.

    An event is newer than any snapshot that was fetched before it was seen: :meth:`fill` therefore only adds
    what was missed, and never takes text away.
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        self._dropped: dict[str, str] = {}
        """The last message of a session that is no longer kept; ids ascend with time."""

    def message_updated(
        self, session_id: str, info: dict[str, Any], *, fresh: bool, idle: bool
    ) -> list[Change]:
        """``fresh``: the message began while we listened; ``idle``: no turn runs, so it begins a new one."""
        identity = info.get("id")
        if not isinstance(identity, str):
            return []
        turn = self._turn(session_id)
        message = turn.messages.get(identity)
        if message is None:
            if self._old(session_id, identity):
                return []
            if fresh and idle and info.get("role") == "user":
                self._drop(session_id, turn, len(turn.messages))
                turn.removed.clear()
            message = turn.messages[identity] = _Message(whole=fresh)
            self._bound(session_id, turn)
        elif message.info is None and fresh:
            message.whole = True
        message.info = info
        message.touched = True
        return self._show(session_id, turn, identity, message)

    def part_updated(self, session_id: str, part: dict[str, Any]) -> list[Change]:
        message_id, part_id = part.get("messageID"), part.get("id")
        if not (isinstance(message_id, str) and isinstance(part_id, str)):
            return []
        turn = self._turn(session_id)
        message = self._message(session_id, turn, message_id)
        if message is None:
            return []
        known = message.parts.get(part_id)
        if known is None:
            known = message.parts[part_id] = _Part()
            known.take(part)
        elif not _behind(part, known):
            known.take(part)
        known.touched = True
        return self._show(session_id, turn, message_id, message)

    def delta(self, session_id: str, message_id: str, part_id: str, field: str, text: str) -> list[Change]:
        turn = self._turns.get(session_id) or self._turn(session_id)
        message = turn.messages.get(message_id)
        if message is None:
            message = self._message(session_id, turn, message_id)
            if message is None:
                return []
        part = message.parts.get(part_id)
        if part is None:
            part = message.parts[part_id] = _Part()
        part.touched = True
        if not part.append(field, text):
            message.whole = False
        if message.info is None:
            return self._miss(session_id, turn)
        if not part.told:
            return []  # told with its part and message, which are on their way
        return [Delta(session_id, message_id, part_id, field, text)]

    def message_removed(self, session_id: str, message_id: str) -> list[Change]:
        turn = self._turn(session_id)
        turn.messages.pop(message_id, None)
        turn.removed.add(message_id)
        return [MessageRemoved(session_id, message_id)]

    def part_removed(self, session_id: str, message_id: str, part_id: str) -> list[Change]:
        turn = self._turn(session_id)
        message = turn.messages.get(message_id)
        if message is None and self._old(session_id, message_id):
            return []
        if message is None or message.parts.pop(part_id, None) is None:
            return self._miss(session_id, turn)
        return self._show(session_id, turn, message_id, message)

    def fill(self, session_id: str, messages: Sequence[dict[str, Any]]) -> list[Change]:
        """Add what was missed from fetched messages; what is whole already stays."""
        turn = self._turn(session_id)
        turn.missed = False
        changes: list[Change] = []
        for item in messages:
            info, parts = item.get("info"), item.get("parts")
            if not isinstance(info, dict) or not isinstance(parts, list):
                continue
            identity = info.get("id")
            if not isinstance(identity, str) or identity in turn.removed:
                continue
            message = turn.messages.get(identity)
            if message is not None and message.whole:
                continue
            if message is None:
                message = turn.messages[identity] = _Message()
                message.touched = False
            if message.info is None or not message.touched:
                message.info = info
            self._merge(message, parts)
            message.whole = True
            changes += self._show(session_id, turn, identity, message)
        # Ids ascend with time; a message that was only missed may be older than those known.
        turn.messages = OrderedDict(sorted(turn.messages.items()))
        self._bound(session_id, turn)
        return changes

    @staticmethod
    def _merge(message: _Message, parts: list[Any]) -> None:
        merged: dict[str, _Part] = {}
        for body in parts:
            if not isinstance(body, dict) or not isinstance(body.get("id"), str):
                continue
            known = message.parts.get(body["id"])
            if known is None:
                known = _Part()
                known.take(body)
                known.touched = False
            elif not _ahead(known, body):
                known.take(body)
            elif known.body is None:
                streamed = known.joined()
                known.take({**body, **streamed})
            merged[body["id"]] = known
        for identity, known in message.parts.items():
            if identity not in merged and known.touched:  # younger than the fetch
                merged[identity] = known
        message.parts = dict(sorted(merged.items()))

    def gap(self, session_ids: Sequence[str]) -> list[Change]:
        """Events were lost: what these sessions said is no longer known to be whole."""
        for turn in self._turns.values():
            turn.missed = False
            for message in turn.messages.values():
                message.whole = message.touched = False
                for part in message.parts.values():
                    part.touched = False
        changes: list[Change] = []
        for session_id in session_ids:
            changes += self._miss(session_id, self._turn(session_id))
        return changes

    def forget(self, session_id: str) -> None:
        """A session was deleted."""
        self._turns.pop(session_id, None)
        self._dropped.pop(session_id, None)

    def clear(self) -> None:
        """No turn runs any more."""
        for session_id, turn in self._turns.items():
            self._drop(session_id, turn, len(turn.messages))
        self._turns.clear()

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """``{"info", "parts"}`` of what is known whole, in order."""
        turn = self._turns.get(session_id)
        if turn is None:
            return []
        return [
            {
                "info": message.info,
                "parts": [part.joined() for part in message.parts.values() if part.body is not None],
            }
            for _, message in sorted(turn.messages.items())
            if message.info is not None and message.whole
        ]

    def _turn(self, session_id: str) -> _Turn:
        turn = self._turns.get(session_id)
        if turn is None:
            turn = self._turns[session_id] = _Turn()
            if len(self._turns) > MAX_SESSIONS:
                other, evicted = self._turns.popitem(last=False)
                self._drop(other, evicted, len(evicted.messages))
        else:
            self._turns.move_to_end(session_id)
        return turn

    def _message(self, session_id: str, turn: _Turn, message_id: str) -> _Message | None:
        """The message, made when it is new; ``None`` when it was dropped before."""
        message = turn.messages.get(message_id)
        if message is None and not self._old(session_id, message_id):
            message = turn.messages[message_id] = _Message()
            self._bound(session_id, turn)
        return message

    def _old(self, session_id: str, message_id: str) -> bool:
        """Late news of an earlier turn: its parts are no longer kept, so told whole it would be empty."""
        return message_id <= self._dropped.get(session_id, "")

    def _bound(self, session_id: str, turn: _Turn) -> None:
        self._drop(session_id, turn, len(turn.messages) - MAX_MESSAGES)

    def _drop(self, session_id: str, turn: _Turn, count: int) -> None:
        for _ in range(count):
            identity, _message = turn.messages.popitem(last=False)
            self._dropped[session_id] = max(identity, self._dropped.get(session_id, ""))

    def _show(self, session_id: str, turn: _Turn, message_id: str, message: _Message) -> list[Change]:
        if message.info is None or not message.whole:
            return self._miss(session_id, turn)
        parts = []
        for part in message.parts.values():
            if part.body is not None:
                part.told = True
                parts.append(part.joined())
        return [MessageUpdated(session_id, message_id, message.info, parts)]

    @staticmethod
    def _miss(session_id: str, turn: _Turn) -> list[Change]:
        if turn.missed:
            return []
        turn.missed = True
        return [MessagesMissed(session_id)]


def _text(part: dict[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _ended(part: dict[str, Any]) -> bool:
    time = part.get("time")
    return isinstance(time, dict) and time.get("end") is not None


def _behind(body: dict[str, Any], known: _Part) -> bool:
    """Whether an event's part says less than was streamed: OpenCode writes text down when the part ends."""
    if _ended(body):
        return False
    streamed = known.joined()
    if len(_text(streamed)) <= len(_text(body)) or not _text(streamed).startswith(_text(body)):
        return False
    known.take({**body, "text": _text(streamed)})
    return True


def _ahead(known: _Part, body: dict[str, Any]) -> bool:
    """Whether what is known of a part is newer than a fetched one."""
    ours = known.joined()
    if _ended(body) or _ended(ours):
        return not _ended(body)
    if "text" in body or "text" in ours:
        return len(_text(ours)) > len(_text(body)) or (known.touched and len(_text(ours)) == len(_text(body)))
    mine, theirs = _state(ours), _state(body)
    return mine > theirs or (mine == theirs and known.touched)


def _state(part: dict[str, Any]) -> int:
    status = an_object(part.get("state")).get("status")
    return _PROGRESS.get(status, 0) if isinstance(status, str) else 0
