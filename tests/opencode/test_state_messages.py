"""The reducer: what a running turn says, put together from events and refetches."""

from __future__ import annotations

import time

from ocman_jupyter.opencode.changes import Delta, MessagesMissed

from .said import NOW, created, delta_event, event, info, made, message_event, part_event, status, text_of


def test_a_message_is_told_whole_and_its_text_as_it_streams():
    state = made(created("ses_1"), status("ses_1", "busy"), message_event("msg_1"))
    assert text_of(state.apply(part_event("msg_1", "prt_1"))) == [""]
    assert state.apply(delta_event("msg_1", "prt_1", "ab")) == [
        Delta("ses_1", "msg_1", "prt_1", "text", "ab")
    ]
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
    state = made(
        created("ses_1"),
        message_event("msg_1"),
        part_event("msg_1", "prt_1"),
        delta_event("msg_1", "prt_1", "abc"),
    )
    assert text_of(state.apply(part_event("msg_1", "prt_1", "a"))) == ["abc"]
    state.apply(delta_event("msg_1", "prt_1", "d"))
    assert text_of(state.apply(part_event("msg_1", "prt_1", ""))) == ["abcd"]


def test_a_snapshot_does_not_overwrite_newer_text():
    state = made(
        created("ses_1"),
        status("ses_1", "busy"),
        message_event("msg_1"),
        part_event("msg_1", "prt_1"),
        delta_event("msg_1", "prt_1", "abc"),
    )
    assert MessagesMissed("ses_1") in state.replace(since=state.mark(), gap=True)
    # OpenCode writes text down when its part ends: until then it lists "".
    listed = [
        {"info": info("msg_1"), "parts": [part_event("msg_1", "prt_1")["payload"]["properties"]["part"]]}
    ]
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
    state = made(
        created("ses_1"),
        message_event("msg_1", role="user"),
        status("ses_1", "busy"),
        message_event("msg_2"),
        part_event("msg_2", "prt_1", "done", end=1),
        status("ses_1", "idle"),
    )
    assert text_of(state.apply(message_event("msg_2", cost=2))) == ["done"]
    state.apply(message_event("msg_3", role="user"))
    assert [item["info"]["id"] for item in state.messages("ses_1")] == ["msg_3"]


def test_late_news_of_an_earlier_turn_neither_empties_it_nor_ends_the_newer_one():
    # OpenCode sums up the changes of a turn after it ended, and sends its prompt once more with them.
    first = [message_event("msg_1", role="user"), part_event("msg_1", "prt_1", "one", end=1)]
    second = [message_event("msg_3", role="user"), part_event("msg_3", "prt_3", "two", end=1)]
    state = made(created("ses_1"), *first, status("ses_1", "busy"), status("ses_1", "idle"), *second)
    assert state.apply(message_event("msg_1", role="user", summary={})) == []
    assert state.apply(part_event("msg_1", "prt_1", "one", end=1)) == []
    assert state.apply(delta_event("msg_1", "prt_1", "x")) == []
    assert [item["info"]["id"] for item in state.messages("ses_1")] == ["msg_3"]


def test_memory_is_bounded_by_sessions_messages_and_text():
    from ocman_jupyter.opencode import transcript

    state = made(*(created(f"ses_{n}") for n in range(200)))
    for n in range(200):
        state.apply(
            event("message.updated", sessionID=f"ses_{n}", info={**info("msg_0"), "sessionID": f"ses_{n}"})
        )
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
    state = made(
        created("ses_1"), status("ses_1", "busy"), message_event("msg_1"), part_event("msg_1", "prt_1")
    )
    item = delta_event("msg_1", "prt_1", "word ")
    count = 20_000
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(count):
            state.apply(item)
        best = min(best, (time.perf_counter() - began) / count)
    assert best < 50e-6
