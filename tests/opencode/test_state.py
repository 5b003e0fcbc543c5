"""The reducer: what each event and each refetch means for sessions, asks and directories."""

from __future__ import annotations

import pytest

from ocman_jupyter.opencode.changes import (
    AskCreated,
    AskResolved,
    DirectoryFreed,
    DirectoryUsed,
    SessionFailed,
    SessionRemoved,
    SessionUpdated,
    StatusChanged,
)
from ocman_jupyter.opencode.records import WARM_UP_TITLE, SessionRecord
from ocman_jupyter.opencode.state import DirectorySnapshot, InstanceState

from .said import NOW, W, created, event, made, permission, question, session, status

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
    told = StatusChanged("ses_1", W, "busy")
    assert state.apply(event("session.status", sessionID="ses_1", status=waiting)) == [told]
    assert state.status("ses_1") == "busy" and state.retry("ses_1") == waiting
    assert state.apply(event("session.status", sessionID="ses_1", status=waiting)) == []
    assert state.apply(event("session.status", sessionID="ses_1", status={**waiting, "attempt": 3})) == [told]
    assert state.apply(status("ses_1", "busy")) == [told] and state.retry("ses_1") is None
    assert state.apply(status("ses_1", "busy")) == []


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
        state.apply(
            event(
                "session.error",
                sessionID="ses_1",
                error={"name": "UnknownError", "data": {"message": message}},
            )
        )
    assert state.error("ses_1").message == "Agent not found"


def test_an_abort_is_no_error():
    state = made(created("ses_1"), status("ses_1", "busy"))
    state.apply(event("session.error", sessionID="ses_1", error={"name": "MessageAbortedError", "data": {}}))
    state.apply(status("ses_1", "idle"))
    assert state.status("ses_1") == "idle"


def test_process_died_in_mid_turn_is_interrupted_not_busy_for_ever():
    state = made(
        created("ses_1"),
        created("ses_2"),
        status("ses_1", "busy"),
        event("permission.asked", **permission("per_1", "ses_1")),
    )
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
    assert state.apply(replied) == [
        AskResolved("per_1", "ses_1", "ses_1", "once"),
        StatusChanged("ses_1", W, "busy"),
    ]
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
    state = made(
        created("ses_1"),
        created("ses_2", parent="ses_1"),
        created("ses_3", parent="ses_2"),
        *(status(f"ses_{n}", "busy") for n in (1, 2, 3)),
    )
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
        AskResolved("per_1", "ses_1", "ses_1", None),
        StatusChanged("ses_1", W, "busy"),
    ]


def test_what_an_event_said_stands_against_an_older_refetch():
    state = made(created("ses_1"), status("ses_1", "busy"))
    since = state.mark()
    listing = [SessionRecord.from_json(session("ses_1"))]
    asked = [permission("per_old", "ses_1")]
    snapshot = DirectorySnapshot(asked, (), {"ses_1": {"type": "busy"}})
    # Meanwhile: renamed, that turn aborted (which leaves its ask in the list), and another one begun.
    state.apply(event("session.updated", sessionID="ses_1", info=session("ses_1", title="new")))
    state.apply(status("ses_1", "idle"))
    state.apply(status("ses_1", "busy"))
    assert state.replace(listing, {W: snapshot}, since=since) == []
    assert state.sessions["ses_1"].title == "new" and not state.asks


def test_an_idle_edge_is_not_lost_to_an_older_refetch():
    state = made(created("ses_1"), status("ses_1", "busy"))
    since = state.mark()
    snapshot = DirectorySnapshot(statuses={"ses_1": {"type": "busy"}})
    state.apply(status("ses_1", "idle"))
    assert state.replace(directories={W: snapshot}, since=since) == []
    assert state.status("ses_1") == "idle"
    # And one that was missed altogether is found by the refetch.
    state.apply(status("ses_1", "busy"))
    told = state.replace(directories={W: DirectorySnapshot()}, since=state.mark(), gap=True)
    assert StatusChanged("ses_1", W, "idle") in told


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
        created("ses_w", title=WARM_UP_TITLE),
        status("ses_w", "busy"),
        event("message.updated", sessionID="ses_w", info={"id": "msg_1", "role": "user", "time": {"created": 1}}),
        event(
            "message.part.updated",
            sessionID="ses_w",
            part={"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_w"},
        ),
        event(
            "message.part.delta",
            sessionID="ses_w",
            messageID="msg_1",
            partID="prt_1",
            field="text",
            delta="x",
        ),
        event("permission.asked", **permission("per_w", "ses_w")),
        event("session.error", sessionID="ses_w", error={"name": "E", "data": {}}),
        event("session.updated", sessionID="ses_w", info=session("ses_w", title="renamed")),
        event("session.deleted", sessionID="ses_w", info=session("ses_w")),
        status("ses_w", "idle"),
    ]
    state = InstanceState(clock=lambda: NOW)
    told = [change for item in events for change in state.apply(item)]
    assert told == [DirectoryUsed(W)]
    hidden = SessionRecord.from_json(session("ses_v", title=WARM_UP_TITLE))
    assert state.replace([hidden], since=state.mark(), gap=True) == []
    assert state.fill("ses_v", [{"info": {"id": "msg_1"}, "parts": []}]) == []


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"payload": None},
        {"payload": {"type": "session.updated"}},
        {"payload": {"type": 3, "properties": {}}},
        *(
            event(
                kind,
                sessionID=7,
                info=[],
                part="x",
                status="busy",
                requestID=None,
                error="e",
                id=3,
                delta=None,
            )
            for kind in (
                "session.created",
                "session.updated",
                "session.deleted",
                "session.status",
                "session.idle",
                "session.error",
                "permission.asked",
                "question.asked",
                "permission.replied",
                "message.updated",
                "message.removed",
                "message.part.updated",
                "message.part.removed",
                "message.part.delta",
                "something.new",
            )
        ),
        *(
            event(kind, sessionID="ses_1", info={"id": None}, part={"id": 1}, status={}, error={"name": 1})
            for kind in ("message.updated", "message.part.updated", "session.status", "session.error")
        ),
    ],
)
def test_an_odd_event_is_survived(odd):
    made(created("ses_1")).apply(odd)
