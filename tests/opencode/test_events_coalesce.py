"""Merging of streamed text: how often it goes out, in what order, and that nothing else waits."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ocman_jupyter.opencode.changes import AskResolved, Delta, MessageUpdated, StatusChanged
from ocman_jupyter.opencode.coalesce import DeltaPump, Deltas

from .conftest import until


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def delta(text: str, session: str = "ses_1", part: str = "prt_1", field: str = "text") -> Delta:
    return Delta(session, "msg_1", part, field, text)


def merger() -> tuple[Deltas, Clock]:
    clock = Clock()
    return Deltas(0.04, clock), clock


def test_the_first_after_a_pause_goes_at_once_and_the_rest_is_merged():
    deltas, clock = merger()
    assert deltas.add([delta("a")]) == [delta("a")]
    clock.now += 0.01
    assert deltas.add([delta("b"), delta("c")]) == []
    assert deltas.due() == 100.04 and deltas.flush() == []
    clock.now = 100.04
    assert deltas.flush() == [delta("bc")]
    assert deltas.due() is None
    clock.now += 1
    assert deltas.add([delta("d")]) == [delta("d")]


def test_parts_and_fields_are_merged_apart():
    deltas, clock = merger()
    deltas.add([delta("")])
    assert deltas.add([delta("a"), delta("x", part="prt_2"), delta("b"), delta("r", field="reasoning")]) == []
    clock.now += 0.04
    assert deltas.flush() == [delta("ab"), delta("x", part="prt_2"), delta("r", field="reasoning")]


def test_whatever_else_a_session_says_comes_after_its_deltas_and_does_not_wait():
    deltas, _ = merger()
    deltas.add([delta("a"), delta("b"), delta("z", session="ses_2"), delta("y", session="ses_2")])
    message = MessageUpdated("ses_1", "msg_1", {}, [])
    assert deltas.add([message]) == [delta("b"), message]
    ask = AskResolved("per_1", "ses_3", "ses_3", "once")
    assert deltas.add([ask]) == [ask]
    assert deltas.flush(everything=True) == [delta("y", session="ses_2")]


def test_sessions_do_not_hold_each_other_up():
    deltas, clock = merger()
    deltas.add([delta("a")])
    clock.now = 100.03
    assert deltas.add([delta("b", session="ses_2")]) == [delta("b", session="ses_2")]
    deltas.add([delta("c"), delta("d", session="ses_2")])
    clock.now = 100.04
    assert deltas.flush() == [delta("c")]
    assert deltas.due() == 100.03 + 0.04


def test_memory_does_not_grow_with_the_sessions_that_were():
    deltas, clock = merger()
    for number in range(1000):
        deltas.add([delta("a", session=f"ses_{number}")])
    clock.now += 1
    deltas.flush()
    assert not deltas._sent and not deltas._held


STEP = st.one_of(
    st.tuples(st.just("delta"), st.sampled_from(["ses_1", "ses_2"]), st.sampled_from(["prt_1", "prt_2"])),
    st.tuples(st.just("status"), st.sampled_from(["ses_1", "ses_2"]), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from(["0.01", "0.05"]), st.just("")),
    st.tuples(st.just("flush"), st.just(""), st.just("")),
)


@given(st.lists(STEP, max_size=80))
def test_no_text_is_lost_or_reordered(steps):
    deltas, clock = merger()
    sent, got = [], []
    for number, (kind, which, part) in enumerate(steps):
        if kind == "delta":
            sent.append(delta(f"{number},", which, part))
            got += deltas.add([sent[-1]])
        elif kind == "status":
            sent.append(StatusChanged(which, "/w", "busy"))
            got += deltas.add([sent[-1]])
            assert got[-1] is sent[-1]
        elif kind == "wait":
            clock.now += float(which)
        else:
            got += deltas.flush()
    got += deltas.flush(everything=True)

    def told(changes: list, session: str, part: str) -> str:
        """A part's text, with the places where a status stood in between."""
        mine = [change for change in changes if change.session_id == session]
        return "".join(
            "|" if isinstance(change, StatusChanged) else change.delta
            for change in mine
            if isinstance(change, StatusChanged) or change.part_id == part
        )

    for session in ("ses_1", "ses_2"):
        for part in ("prt_1", "prt_2"):
            assert told(got, session, part) == told(sent, session, part)


async def test_the_pump_sends_what_is_held_when_it_is_due():
    got: list = []
    pump = DeltaPump(got.extend, 0.04)
    for number in range(200):
        pump.push([delta(f"{number},")])
        await asyncio.sleep(0.001)
    await until(lambda: "".join(change.delta for change in got) == "".join(f"{n}," for n in range(200)))
    assert len(got) < 30
    pump.push([delta("x"), delta("y")])
    pump.close()
    assert "".join(change.delta for change in got).endswith("xy")
