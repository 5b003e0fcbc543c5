"""The reducer: what each event means, and that refetches and events in any order come to the same state."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocman_jupyter.opencode.changes import (
    AskCreated,
    AskResolved,
    Delta,
    DirectoryFreed,
    DirectoryUsed,
    MessagesMissed,
    MessageUpdated,
    SessionFailed,
    SessionRemoved,
    SessionUpdated,
    StatusChanged,
)
from ocman_jupyter.opencode.records import WARM_UP_TITLE, SessionRecord
from ocman_jupyter.opencode.state import DirectorySnapshot, InstanceState

W = "/w"
NOW = 1_796_037_400.0


def event(kind: str, directory: str = W, **properties: Any) -> dict[str, Any]:
    return {"directory": directory, "payload": {"type": kind, "properties": properties}}


def session(identity: str, title: str = "t", parent: str | None = None, updated: int = 1) -> dict[str, Any]:
    body = {"id": identity, "title": title, "directory": W, "projectID": "p",
            "time": {"created": 1, "updated": updated}}  # fmt: skip
    return {**body, "parentID": parent} if parent else body


def created(identity: str, **more: Any) -> dict[str, Any]:
    return event("session.created", sessionID=identity, info=session(identity, **more))


def status(identity: str, kind: str) -> dict[str, Any]:
    return event("session.status", sessionID=identity, status={"type": kind})


def permission(ask: str, identity: str) -> dict[str, Any]:
    return {"id": ask, "sessionID": identity, "permission": "bash", "patterns": ["ls"], "always": ["ls *"],
            "metadata": {"k": 1}}  # fmt: skip


def question(ask: str, identity: str) -> dict[str, Any]:
    return {"id": ask, "sessionID": identity, "questions": [{"question": "Which?", "options": []}]}


def made(*events: dict[str, Any]) -> InstanceState:
    state = InstanceState(clock=lambda: NOW)
    for item in events:
        state.apply(item)
    return state


# --- sessions and status ---------------------------------------------------------------------


def test_a_turn_goes_from_idle_over_busy_to_idle():
    state = made(created("ses_1"))
    assert state.apply(status("ses_1", "busy")) == [StatusChanged("ses_1", W, "busy")]
    assert state.apply(status("ses_1", "busy")) == []
    assert state.apply(status("ses_1", "idle")) == [StatusChanged("ses_1", W, "idle")]
    assert state.apply(event("session.idle", sessionID="ses_1")) == []


def test_retry_is_busy_and_can_be_told():
    state = made(created("ses_1"))
    waiting = {"type": "retry", "attempt": 2, "message": "overloaded", "next": 5}
    state.apply(event("session.status", sessionID="ses_1", status=waiting))
    assert state.status("ses_1") == "busy" and state.retry("ses_1") == waiting


def test_an_update_that_says_nothing_new_is_not_told():
    state = made(created("ses_1"))
    again = event("session.updated", sessionID="ses_1", info=session("ses_1"))
    assert state.apply(again) == []
    renamed = event("session.updated", sessionID="ses_1", info=session("ses_1", title="new"))
    assert [type(change) for change in state.apply(renamed)] == [SessionUpdated]


def test_a_deleted_session_takes_its_asks_along_and_stays_gone():
    state = made(created("ses_1"), status("ses_1", "busy"), event("permission.asked", **permission("per_1", "ses_1")))
    changes = state.apply(event("session.deleted", sessionID="ses_1", info=session("ses_1")))
    assert [type(change) for change in changes] == [AskResolved, StatusChanged, SessionRemoved]
    # A turn that still ran, and a list that is older, speak of it once more.
    assert state.apply(status("ses_1", "busy")) == []
    assert state.apply(event("session.updated", sessionID="ses_1", info=session("ses_1"))) == []
    assert state.replace([SessionRecord.from_json(session("ses_1"))], since=state.mark()) == []
    assert not state.sessions and not state.busy()


def test_a_session_deleted_while_busy_does_not_come_back_from_the_status_list():
    state = made(created("ses_1"))
    snapshot = DirectorySnapshot([permission("per_x", "ses_gone")], (), {"ses_gone": {"type": "busy"}})
    state.replace([SessionRecord.from_json(session("ses_1"))], {W: snapshot}, since=state.mark())
    assert state.busy() == [] and not state.asks and list(state.sessions) == ["ses_1"]


def test_a_failed_turn_is_an_error_until_the_next_begins():
    state = made(created("ses_1"), status("ses_1", "busy"))
    error = {"name": "APIError", "data": {"message": "no credit"}}
    assert state.apply(event("session.error", sessionID="ses_1", error=error)) == [
        SessionFailed("ses_1", W, "APIError", "no credit")
    ]
    assert state.apply(status("ses_1", "idle")) == [StatusChanged("ses_1", W, "error")]
    assert state.error("ses_1").message == "no credit"
    assert state.apply(status("ses_1", "busy")) == [StatusChanged("ses_1", W, "busy")]
    assert state.error("ses_1") is None


def test_a_failed_turn_settles_with_its_second_idle():
    # Between the two OpenCode takes a prompt and never answers it.
    now = [NOW]
    state = InstanceState(clock=lambda: now[0])
    error = event("session.error", sessionID="ses_1", error={"name": "APIError", "data": {"message": "no"}})
    idle = [status("ses_1", "idle"), event("session.idle", sessionID="ses_1")]
    for item in (created("ses_1"), status("ses_1", "busy"), error):
        state.apply(item)
    assert not state.settling("ses_1")
    for item in idle:
        state.apply(item)
    assert state.settling("ses_1") and state.status("ses_1") == "error"
    for item in idle:
        state.apply(item)
    assert not state.settling("ses_1")
    for item in (status("ses_1", "busy"), error, *idle):
        state.apply(item)
    now[0] += 3
    assert not state.settling("ses_1")  # the second may be lost


def test_the_stack_trace_that_follows_an_error_does_not_replace_it():
    state = made(created("ses_1"))
    for message in ("Agent not found", "UnknownError: UnknownError\n    at <anonymous> (x.js:1)"):
        state.apply(event("session.error", sessionID="ses_1", error={"name": "UnknownError", "data": {"message": message}}))
    assert state.error("ses_1").message == "Agent not found"


def test_an_abort_is_no_error():
    state = made(created("ses_1"), status("ses_1", "busy"))
    state.apply(event("session.error", sessionID="ses_1", error={"name": "MessageAbortedError", "data": {}}))
    state.apply(status("ses_1", "idle"))
    assert state.status("ses_1") == "idle"


def test_process_died_in_mid_turn_is_interrupted_not_busy_for_ever():
    state = made(created("ses_1"), created("ses_2"), status("ses_1", "busy"),
                 event("permission.asked", **permission("per_1", "ses_1")))  # fmt: skip
    changes = state.process_died()
    assert AskResolved("per_1", "ses_1", "ses_1", None) in changes
    assert StatusChanged("ses_1", W, "error") in changes and DirectoryFreed(W) in changes
    assert state.error("ses_1").name == "Interrupted"
    assert state.status("ses_2") == "idle" and not state.directories
    # The next process knows nothing of that turn; that does not undo it.
    state.replace(directories={W: DirectorySnapshot()}, since=state.mark(), gap=True)
    assert state.status("ses_1") == "error"


# --- asks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["permission", "question"])
def test_an_ask_makes_its_session_need_you_until_it_is_answered(kind):
    body = permission("per_1", "ses_1") if kind == "permission" else question("per_1", "ses_1")
    state = made(created("ses_1"), status("ses_1", "busy"))
    asked, changed = state.apply(event(f"{kind}.asked", **body))
    assert isinstance(asked, AskCreated) and asked.ask.kind == kind and asked.ask.directory == W
    assert changed == StatusChanged("ses_1", W, "needs_you")
    replied = event(f"{kind}.replied", sessionID="ses_1", requestID="per_1", reply="once")
    assert state.apply(replied) == [AskResolved("per_1", "ses_1", "ses_1", "once"), StatusChanged("ses_1", W, "busy")]
    assert state.apply(replied) == []


def test_a_rejected_question_is_resolved():
    state = made(created("ses_1"), status("ses_1", "busy"), event("question.asked", **question("que_1", "ses_1")))
    changes = state.apply(event("question.rejected", sessionID="ses_1", requestID="que_1"))
    assert changes[0] == AskResolved("que_1", "ses_1", "ses_1", "reject")


def test_an_aborted_turn_takes_its_asks_along_although_opencode_keeps_them():
    state = made(created("ses_1"), status("ses_1", "busy"), event("permission.asked", **permission("per_1", "ses_1")))
    assert AskResolved("per_1", "ses_1", "ses_1", None) in state.apply(status("ses_1", "idle"))
    state.apply(status("ses_1", "busy"))
    listed = DirectorySnapshot([permission("per_1", "ses_1")], (), {"ses_1": {"type": "busy"}})
    state.replace(directories={W: listed}, since=state.mark())
    assert not state.asks and state.status("ses_1") == "busy"


def test_the_ask_of_a_subagent_is_shown_at_its_top_ancestor_too():
    state = made(created("ses_1"), created("ses_2", parent="ses_1"), created("ses_3", parent="ses_2"),
                 *(status(f"ses_{n}", "busy") for n in (1, 2, 3)))  # fmt: skip
    changes = state.apply(event("permission.asked", **permission("per_1", "ses_3")))
    assert changes[0].top_id == "ses_1"
    assert {change.session_id for change in changes[1:]} == {"ses_1", "ses_2", "ses_3"}
    assert state.status("ses_1") == "needs_you" and [ask.id for ask in state.pending("ses_1")] == ["per_1"]
    state.apply(status("ses_3", "idle"))
    assert state.status("ses_1") == "busy" and state.pending("ses_1") == []


def test_an_ask_vanishes_only_when_the_refetch_of_its_own_directory_says_so():
    state = made(created("ses_1"), status("ses_1", "busy"), event("permission.asked", **permission("per_1", "ses_1")))
    state.replace(directories={"/other": DirectorySnapshot()}, since=state.mark())
    assert list(state.asks) == ["per_1"]
    busy = {"ses_1": {"type": "busy"}}
    assert state.replace(directories={W: DirectorySnapshot(statuses=busy)}, since=state.mark()) == [
        AskResolved("per_1", "ses_1", "ses_1", None), StatusChanged("ses_1", W, "busy")
    ]  # fmt: skip


def test_parents_that_point_at_each_other_do_not_hang():
    state = made(created("ses_1", parent="ses_2"), created("ses_2", parent="ses_1"))
    assert state.top("ses_1") == "ses_2"


# --- directories, warm-up, odd events --------------------------------------------------------


def test_directories_are_told_when_used_and_when_freed():
    state = InstanceState(clock=lambda: NOW)
    assert state.apply(event("catalog.updated")) == [DirectoryUsed(W)]
    assert state.apply(event("catalog.updated")) == [] and state.directories == {W: NOW}
    assert state.apply(event("server.instance.disposed", directory=W)) == [DirectoryFreed(W)]
    assert state.directories == {}


def test_nothing_of_a_warm_up_session_comes_out():
    events = [
        created("ses_w", title=WARM_UP_TITLE), status("ses_w", "busy"),
        event("message.updated", sessionID="ses_w", info={"id": "msg_1", "role": "user", "time": {"created": 1}}),
        event("message.part.updated", sessionID="ses_w", part={"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_w"}),
        event("message.part.delta", sessionID="ses_w", messageID="msg_1", partID="prt_1", field="text", delta="x"),
        event("permission.asked", **permission("per_w", "ses_w")),
        event("session.error", sessionID="ses_w", error={"name": "E", "data": {}}),
        event("session.updated", sessionID="ses_w", info=session("ses_w", title="renamed")),
        event("session.deleted", sessionID="ses_w", info=session("ses_w")), status("ses_w", "idle"),
    ]  # fmt: skip
    state = InstanceState(clock=lambda: NOW)
    told = [change for item in events for change in state.apply(item)]
    assert told == [DirectoryUsed(W)]
    hidden = SessionRecord.from_json(session("ses_v", title=WARM_UP_TITLE))
    assert state.replace([hidden], since=state.mark(), gap=True) == []
    assert state.fill("ses_v", [{"info": {"id": "msg_1"}, "parts": []}]) == []


@pytest.mark.parametrize(
    "odd",
    [{}, {"payload": None}, {"payload": {"type": "session.updated"}}, {"payload": {"type": 3, "properties": {}}},
     *(event(kind, sessionID=7, info=[], part="x", status="busy", requestID=None, error="e", id=3, delta=None)
       for kind in ("session.created", "session.updated", "session.deleted", "session.status", "session.idle",
                    "session.error", "permission.asked", "question.asked", "permission.replied", "message.updated",
                    "message.removed", "message.part.updated", "message.part.removed", "message.part.delta",
                    "something.new")),
     *(event(kind, sessionID="ses_1", info={"id": None}, part={"id": 1}, status={}, error={"name": 1})
       for kind in ("message.updated", "message.part.updated", "session.status", "session.error"))],
)  # fmt: skip
def test_an_odd_event_is_survived(odd):
    made(created("ses_1")).apply(odd)


# --- messages --------------------------------------------------------------------------------


def info(message: str, role: str = "assistant", made_ms: float = NOW * 1000 + 1, **more: Any) -> dict[str, Any]:
    return {"id": message, "sessionID": "ses_1", "role": role, "time": {"created": made_ms}, **more}


def message_event(message: str, **more: Any) -> dict[str, Any]:
    return event("message.updated", sessionID="ses_1", info=info(message, **more))


def part_event(message: str, part: str, text: str = "", end: int | None = None) -> dict[str, Any]:
    body = {"id": part, "messageID": message, "sessionID": "ses_1", "type": "text", "text": text,
            "time": {"start": 1, **({"end": end} if end else {})}}  # fmt: skip
    return event("message.part.updated", sessionID="ses_1", part=body)


def delta_event(message: str, part: str, text: str) -> dict[str, Any]:
    return event("message.part.delta", sessionID="ses_1", messageID=message, partID=part, field="text", delta=text)


def text_of(changes: list[Any]) -> list[str]:
    return [part.get("text") for change in changes if isinstance(change, MessageUpdated) for part in change.parts]


def test_a_message_is_told_whole_and_its_text_as_it_streams():
    state = made(created("ses_1"), status("ses_1", "busy"), message_event("msg_1"))
    assert text_of(state.apply(part_event("msg_1", "prt_1"))) == [""]
    assert state.apply(delta_event("msg_1", "prt_1", "ab")) == [Delta("ses_1", "msg_1", "prt_1", "text", "ab")]
    state.apply(delta_event("msg_1", "prt_1", "c"))
    assert text_of(state.apply(message_event("msg_1", cost=1))) == ["abc"]
    assert text_of(state.apply(part_event("msg_1", "prt_1", "abc!", end=5))) == ["abc!"]


def test_what_was_told_before_does_not_change_afterwards():
    state = made(created("ses_1"), message_event("msg_1"))
    (told,) = state.apply(part_event("msg_1", "prt_1"))
    state.apply(delta_event("msg_1", "prt_1", "ab"))
    state.apply(message_event("msg_1"))
    assert told.parts[0]["text"] == ""


def test_a_delta_before_its_part_and_message_is_kept():
    state = made(created("ses_1"), status("ses_1", "busy"))
    assert state.apply(delta_event("msg_1", "prt_1", "a")) == [MessagesMissed("ses_1")]
    assert state.apply(delta_event("msg_1", "prt_1", "b")) == []
    assert text_of(state.apply(message_event("msg_1"))) == []
    assert text_of(state.apply(part_event("msg_1", "prt_1", ""))) == ["ab"]


def test_an_unfinished_part_that_says_less_does_not_take_text_away():
    state = made(created("ses_1"), message_event("msg_1"), part_event("msg_1", "prt_1"),
                 delta_event("msg_1", "prt_1", "abc"))  # fmt: skip
    assert text_of(state.apply(part_event("msg_1", "prt_1", "a"))) == ["abc"]
    state.apply(delta_event("msg_1", "prt_1", "d"))
    assert text_of(state.apply(part_event("msg_1", "prt_1", ""))) == ["abcd"]


def test_a_snapshot_does_not_overwrite_newer_text():
    state = made(created("ses_1"), status("ses_1", "busy"), message_event("msg_1"), part_event("msg_1", "prt_1"),
                 delta_event("msg_1", "prt_1", "abc"))  # fmt: skip
    assert MessagesMissed("ses_1") in state.replace(since=state.mark(), gap=True)
    # OpenCode writes text down when its part ends: until then it lists "".
    listed = [{"info": info("msg_1"), "parts": [part_event("msg_1", "prt_1")["payload"]["properties"]["part"]]}]
    assert text_of(state.fill("ses_1", listed)) == ["abc"]
    state.apply(delta_event("msg_1", "prt_1", "e"))
    assert text_of(state.fill("ses_1", listed)) == []  # nothing was missed this time
    assert state.messages("ses_1")[0]["parts"][0]["text"] == "abce"


def test_a_message_from_before_the_stream_is_fetched_not_guessed():
    state = made(created("ses_1"), status("ses_1", "busy"))
    old = NOW * 1000 - 60_000
    assert state.apply(message_event("msg_1", made_ms=old)) == [MessagesMissed("ses_1")]
    assert state.apply(part_event("msg_1", "prt_2", "new")) == []
    listed = [{"info": info("msg_1", made_ms=old), "parts": [{"id": "prt_1", "type": "step-start"}]}]
    (told,) = state.fill("ses_1", listed)
    assert [part["id"] for part in told.parts] == ["prt_1", "prt_2"]


def test_the_last_turn_is_kept_for_late_updates_and_dropped_by_the_next():
    state = made(created("ses_1"), message_event("msg_1", role="user"), status("ses_1", "busy"),
                 message_event("msg_2"), part_event("msg_2", "prt_1", "done", end=1), status("ses_1", "idle"))  # fmt: skip
    assert text_of(state.apply(message_event("msg_2", cost=2))) == ["done"]
    state.apply(message_event("msg_3", role="user"))
    assert [item["info"]["id"] for item in state.messages("ses_1")] == ["msg_3"]


def test_memory_is_bounded_by_sessions_messages_and_text():
    from ocman_jupyter.opencode import transcript

    state = made(*(created(f"ses_{n}") for n in range(200)))
    for n in range(200):
        state.apply(event("message.updated", sessionID=f"ses_{n}", info={**info("msg_1"), "sessionID": f"ses_{n}"}))
    assert len(state._transcript._turns) <= transcript.MAX_SESSIONS
    state.apply(status("ses_1", "busy"))
    for n in range(500):
        state.apply(message_event(f"msg_{n:04}"))
    assert len(state.messages("ses_1")) <= transcript.MAX_MESSAGES
    state.apply(part_event("msg_0499", "prt_1"))
    for _ in range(30):
        assert state.apply(delta_event("msg_0499", "prt_1", "x" * 100_000))
    part = state._transcript._turns["ses_1"].messages["msg_0499"].parts["prt_1"]
    assert sum(len(chunk) for chunks in part.chunks.values() for chunk in chunks) <= transcript.MAX_STREAMED


def test_a_delta_costs_little():
    state = made(created("ses_1"), status("ses_1", "busy"), message_event("msg_1"), part_event("msg_1", "prt_1"))
    item = delta_event("msg_1", "prt_1", "word ")
    count = 20_000
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(count):
            state.apply(item)
        best = min(best, (time.perf_counter() - began) / count)
    assert best < 50e-6


# --- any order comes to the same -------------------------------------------------------------


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
            for other in [key for key, value in self.sessions.items() if identity in (key, value.get("parentID"))]:
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
STEPS = [*ACTS, *ACTS, "hear", "hear", "fetch", "fetch", "fetch", "gap"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40)), max_size=60))
def test_any_interleaving_of_refetches_and_events_converges(steps):
    server, state, face = Server(), InstanceState(clock=lambda: NOW), Face()
    fetched: list[Any] = []  # a refetch under way: mark, asks, statuses
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
        else:
            since, asks, statuses = fetched
            listing = server.list_sessions()
            face.hear(state.replace(listing, {W: DirectorySnapshot(asks, (), statuses)}, since=since, gap=gap))
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
    assert {key: value.title for key, value in state.sessions.items()} == {k: b["title"] for k, b in shown.items()}
    live = {ask for ask in server.live if server.asks[ask] in shown}
    # What an aborted turn left behind cannot be told from a new ask once events were lost and a turn runs.
    left = {ask for ask, owner in server.asks.items() if owner in server.running and owner in shown} if lost else live
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
            {"info": info(message, made_ms=self.made[message]),
             "parts": [part_event(message, part, text if ended else "", 1 if ended else None)
                       ["payload"]["properties"]["part"] for part, (text, ended) in parts.items()]}
            for message, parts in self.messages.items()
        ]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("sssshhfFg"), st.integers(0, 40)), max_size=60))
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
    truth = {message: {part: text for part, (text, _) in parts.items()} for message, parts in speaker.messages.items()}
    assert shown == truth
