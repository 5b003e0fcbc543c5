"""The reducer: refetches and events in any order come to the same state."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ocman_jupyter.opencode.changes import (
    AskCreated,
    AskResolved,
    Delta,
    MessagesMissed,
    MessageUpdated,
    SessionRemoved,
    SessionUpdated,
    StatusChanged,
)
from ocman_jupyter.opencode.records import WARM_UP_TITLE, SessionRecord
from ocman_jupyter.opencode.state import DirectorySnapshot, InstanceState

from .said import (
    NOW,
    W,
    created,
    delta_event,
    event,
    info,
    message_event,
    part_event,
    permission,
    session,
    status,
)


class Server:
    """What OpenCode would say: the truth, its lists, and its events while somebody listens."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.running: set[str] = set()
        self.asks: dict[str, str] = {}  # live and left behind
        self.live: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.listening = True
        self.count = 0

    def tell(self, item: dict[str, Any]) -> None:
        if self.listening:
            self.events.append(item)

    def pick(self, pool: Any, number: int) -> Any:
        pool = sorted(pool)
        return pool[number % len(pool)] if pool else None

    def act(self, what: str, number: int) -> None:
        self.count += 1
        identity = self.pick(self.sessions, number)
        if what == "create":
            new = f"ses_{self.count:04}"
            parent = identity if number % 2 and identity else None
            title = WARM_UP_TITLE if number % 5 == 0 else f"t{self.count}"
            self.sessions[new] = session(new, title, None if title == WARM_UP_TITLE else parent, self.count)
            self.tell(event("session.created", sessionID=new, info=self.sessions[new]))
        elif identity is None:
            return
        elif what == "rename" and self.sessions[identity]["title"] != WARM_UP_TITLE:
            old = self.sessions[identity]
            self.sessions[identity] = session(identity, f"r{self.count}", old.get("parentID"), self.count)
            self.tell(event("session.updated", sessionID=identity, info=self.sessions[identity]))
        elif what == "delete":  # what runs then stays in the lists for ever
            for other in [
                key for key, value in self.sessions.items() if identity in (key, value.get("parentID"))
            ]:
                self.live -= {ask for ask, owner in self.asks.items() if owner == other}
                body = self.sessions.pop(other)
                self.tell(event("session.deleted", sessionID=other, info=body))
        elif what == "busy":
            self.running.add(identity)
            self.tell(status(identity, "busy"))
        elif what in ("end", "abort") and identity in self.running:
            owned = {ask for ask, owner in self.asks.items() if owner == identity and ask in self.live}
            if what == "end":
                for ask in sorted(owned):
                    self.reply(ask)
            self.live -= owned
            self.running.discard(identity)
            self.tell(status(identity, "idle"))
            self.tell(event("session.idle", sessionID=identity))
        elif what == "ask" and identity in self.running:
            ask = f"per_{self.count:04}"
            self.asks[ask] = identity
            self.live.add(ask)
            self.tell(event("permission.asked", **permission(ask, identity)))
        elif what == "reply":
            ask = self.pick(self.live, number)
            if ask is not None:
                self.reply(ask)

    def reply(self, ask: str) -> None:
        owner = self.asks.pop(ask)
        self.live.discard(ask)
        self.tell(event("permission.replied", sessionID=owner, requestID=ask, reply="once"))

    def list_asks(self) -> list[dict[str, Any]]:
        return [permission(ask, owner) for ask, owner in self.asks.items()]

    def list_statuses(self) -> dict[str, Any]:
        return {identity: {"type": "busy"} for identity in self.running}

    def list_sessions(self) -> list[SessionRecord]:
        return [SessionRecord.from_json(body) for body in self.sessions.values()]


class Face:
    """What somebody knows who only hears of changes."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionRecord] = {}
        self.status: dict[str, str] = {}
        self.asks: set[str] = set()

    def hear(self, changes: list[Any]) -> None:
        for change in changes:
            if isinstance(change, SessionUpdated):
                assert change.session.title != WARM_UP_TITLE
                self.sessions[change.session.id] = change.session
            elif isinstance(change, SessionRemoved):
                del self.sessions[change.session_id]
                self.status.pop(change.session_id, None)
            elif isinstance(change, StatusChanged):
                assert change.session_id in self.sessions
                self.status[change.session_id] = change.status
            elif isinstance(change, AskCreated):
                assert change.ask.id not in self.asks
                self.asks.add(change.ask.id)
            elif isinstance(change, AskResolved):
                self.asks.remove(change.id)


ACTS = ["create", "rename", "delete", "busy", "end", "abort", "ask", "reply"]
STEPS = [*ACTS, *ACTS, "hear", "hear", *["fetch"] * 6, "gap"]


def steps(words: str) -> list[tuple[str, int]]:
    return [(word.rstrip("0123456789"), int("".join(filter(str.isdigit, word)) or 0)) for word in words.split()]


# A refetch sees an ask; then come, late, the end of the turn before it and its own event.
@example(steps("create2 busy end fetch fetch fetch fetch fetch busy ask fetch"))
@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40)), min_size=20, max_size=70))
def test_any_interleaving_of_refetches_and_events_converges(steps):
    server, state, face = Server(), InstanceState(clock=lambda: NOW), Face()
    fetched: list[Any] = []  # a refetch under way: mark, asks, statuses, sessions
    gap = lost = False

    def hear(count: int) -> None:
        for item in server.events[:count]:
            face.hear(state.apply(item))
        del server.events[:count]

    def fetch() -> None:
        nonlocal gap
        if not fetched:
            server.listening = True
            fetched.append(state.mark())
        elif len(fetched) == 1:
            fetched.append(server.list_asks())
        elif len(fetched) == 2:
            fetched.append(server.list_statuses())
        elif len(fetched) == 3:
            fetched.append(server.list_sessions())
        else:
            since, asks, statuses, listing = fetched
            face.hear(
                state.replace(listing, {W: DirectorySnapshot(asks, (), statuses)}, since=since, gap=gap)
            )
            fetched.clear()
            gap = False

    for step, number in steps:
        if step == "hear":
            hear(number)
        elif step == "fetch":
            fetch()
        elif step == "gap":
            server.events.clear()
            server.listening = False
            fetched.clear()
            gap = lost = True
        else:
            server.act(step, number)
    while gap or fetched:
        fetch()
    hear(len(server.events))

    shown = {key: body for key, body in server.sessions.items() if body["title"] != WARM_UP_TITLE}
    assert {key: value.title for key, value in state.sessions.items()} == {
        k: b["title"] for k, b in shown.items()
    }
    live = {ask for ask in server.live if server.asks[ask] in shown}
    # What an aborted turn left behind cannot be told from a new ask once events were lost and a turn runs.
    left = (
        {ask for ask, owner in server.asks.items() if owner in server.running and owner in shown}
        if lost
        else live
    )
    assert live <= set(state.asks) <= live | left
    for identity in shown:
        if state.pending(identity):
            assert state.status(identity) == "needs_you"
        else:
            assert state.status(identity) == ("busy" if identity in server.running else "idle")
    assert face.sessions == dict(state.sessions) and face.asks == set(state.asks)
    assert {key: face.status.get(key, "idle") for key in shown} == {key: state.status(key) for key in shown}


class Speaker:
    """A turn that streams: parts grow by deltas, and are written down when they end."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}  # message -> {part: [text, ended]}
        self.made: dict[str, float] = {}
        self.events: list[dict[str, Any]] = []
        self.listening = True
        self.count = 0

    def tell(self, item: dict[str, Any]) -> None:
        if self.listening:
            self.events.append(item)

    def now(self) -> float:
        return NOW + self.count

    def told(self, message: str) -> dict[str, Any]:
        return message_event(message, made_ms=self.made[message])

    def act(self, number: int) -> None:
        self.count += 1
        message = max(self.messages, default=None)
        parts = self.messages.get(message, {})
        part = max(parts, default=None)
        if message is None or number % 10 == 0:
            self.end()
            message = f"msg_{self.count:04}"
            self.messages[message] = {}
            self.made[message] = self.now() * 1000
            self.tell(self.told(message))
        elif part is None or parts[part][1]:
            part = f"prt_{self.count:04}"
            parts[part] = ["", False]
            self.tell(part_event(message, part))
        elif number % 10 == 1:
            self.end()
        elif number % 10 == 2:
            self.tell(self.told(message))
        else:
            parts[part][0] += f"{self.count} "
            self.tell(delta_event(message, part, f"{self.count} "))

    def end(self) -> None:
        for message, parts in self.messages.items():
            for part, value in parts.items():
                if not value[1]:
                    value[1] = True
                    self.tell(part_event(message, part, value[0], end=1))

    def listing(self) -> list[dict[str, Any]]:
        return [
            {
                "info": info(message, made_ms=self.made[message]),
                "parts": [
                    part_event(message, part, text if ended else "", 1 if ended else None)["payload"][
                        "properties"
                    ]["part"]
                    for part, (text, ended) in parts.items()
                ],
            }
            for message, parts in self.messages.items()
        ]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("sssshhfFg"), st.integers(0, 40)), min_size=20, max_size=70))
def test_streamed_text_survives_any_order_and_never_shrinks(steps):
    speaker = Speaker()
    state = InstanceState(clock=speaker.now)
    state.apply(created("ses_1"))
    state.apply(status("ses_1", "busy"))
    shown: dict[str, dict[str, str]] = {}
    missed = gap = False
    listing: list[dict[str, Any]] | None = None

    def hear(changes: list[Any]) -> None:
        nonlocal missed
        for change in changes:
            if isinstance(change, MessageUpdated):
                before = shown.get(change.message_id, {})
                shown[change.message_id] = {part["id"]: part["text"] for part in change.parts}
                for part in change.parts:
                    if "end" not in part["time"]:
                        assert part["text"].startswith(before.get(part["id"], ""))
            elif isinstance(change, Delta):
                shown[change.message_id][change.part_id] += change.delta
            elif isinstance(change, MessagesMissed):
                missed = True

    def fill() -> None:
        nonlocal listing, missed
        if listing is not None:
            missed = False
            hear(state.fill("ses_1", listing))
            listing = None

    for step, number in steps:
        if step == "s":
            speaker.act(number)
        elif step == "h":
            for item in speaker.events[:number]:
                hear(state.apply(item))
            del speaker.events[:number]
        elif step == "g":
            speaker.events.clear()
            speaker.listening, gap, listing = False, True, None
        elif step == "f" and (gap or missed) and listing is None:
            if gap:
                speaker.listening, gap = True, False
                hear(state.replace(since=state.mark(), gap=True))
            listing = speaker.listing()
        elif step == "F":
            fill()
    if gap:
        speaker.listening = True
        hear(state.replace(since=state.mark(), gap=True))
    fill()
    speaker.end()
    for item in speaker.events:
        hear(state.apply(item))
    if missed:
        listing = speaker.listing()
        fill()
    truth = {
        message: {part: text for part, (text, _) in parts.items()}
        for message, parts in speaker.messages.items()
    }
    assert shown == truth
