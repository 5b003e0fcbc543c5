"""The event stream: framing, bounds, liveness, reconnects, and the order of refetch and events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocman_jupyter import errors
from ocman_jupyter.opencode.client import ConnectionRefused, OpenCodeClient
from ocman_jupyter.opencode.events import EventStream, Frames

from .conftest import FakeOpenCode, reply, until


def frame(number: int, text: str = "") -> bytes:
    event = {"directory": "/w", "payload": {"type": "x", "properties": {"n": number, "text": text}}}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def sync(number: int) -> bytes:
    return (
        b'data: {"directory":"/w","project":"p","payload":{"type":"sync","syncEvent":{"n":%d}}}\n\n' % number
    )


HEARTBEAT = b'data: {"payload":{"id":"evt_1","type":"server.heartbeat","properties":{}}}\n\n'


# --- framing ---------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 60)), st.booleans())
def test_events_are_found_however_the_bytes_are_cut(cuts, windows_lines):
    stream = frame(0) + sync(1) + frame(2, "é\n日") + HEARTBEAT + b": comment\n\n" + frame(3)
    if windows_lines:
        stream = stream.replace(b"\n", b"\r\n")
        cuts = []
    frames, found = Frames(10_000), []
    for size in [*cuts, len(stream)]:
        found += frames.feed(stream[:size])
        stream = stream[size:]
    assert [json.loads(data)["payload"]["properties"]["n"] for data in found] == [0, 2, 3]


def test_doubles_are_dropped_and_text_that_looks_like_one_is_not():
    text = '"payload":{"type":"sync"'
    frames = Frames(10_000)
    assert list(frames.feed(sync(1))) == []
    (data,) = frames.feed(frame(2, text))
    assert json.loads(data)["payload"]["properties"]["text"] == text


def test_fields_and_lines_of_an_event_are_read_as_the_standard_says():
    frames = Frames(10_000)
    assert list(frames.feed(b"event: x\nid: 1\ndata: {\ndata:}\nretry: 5\n\n: only a comment\n\n")) == [
        b"{\n}"
    ]


def test_an_unterminated_event_does_not_grow_memory_and_those_after_it_come():
    frames = Frames(1_000_000)
    chunk = b"x" * 65536
    tracemalloc.start()
    for _ in range(1000):  # 65 MB
        assert list(frames.feed(chunk)) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    assert len(list(frames.feed(b"\n\n" + frame(1)))) == 1
    assert frames.skipped == 1


def test_the_end_of_a_skipped_event_is_found_when_cut_in_two():
    frames = Frames(100)
    assert list(frames.feed(b"data: " + b"x" * 200 + b"\n")) == []
    assert len(list(frames.feed(b"\n" + frame(1)))) == 1


def test_an_event_that_is_too_long_but_complete_is_skipped_too():
    frames = Frames(200)
    assert len(list(frames.feed(frame(1, "x" * 300) + frame(2)))) == 1 and frames.skipped == 1


def test_many_small_chunks_are_not_searched_again_and_again():
    frames = Frames(4_000_000)
    began = time.perf_counter()
    for _ in range(30_000):
        assert not list(frames.feed(b"x" * 100))
    assert time.perf_counter() - began < 2


# --- the stream ------------------------------------------------------------------------------


class Listener:
    """Collects what a stream delivers."""

    def __init__(self, fake: FakeOpenCode, **options: Any) -> None:
        self.seen: list[Any] = []
        self.lost: list[Exception] = []
        self.connects = 0
        self.refetch: asyncio.Event | None = None
        self.client = OpenCodeClient(fake.url, "pw")
        options.setdefault("backoff", (0.01, 0.05))
        self.stream = EventStream(self.client, self._on_event, self._on_connect, self.lost.append, **options)

    def _on_event(self, event: dict[str, Any]) -> None:
        number = event["payload"]["properties"].get("n")
        if number is not None:
            self.seen.append(number)

    async def _on_connect(self) -> None:
        self.connects += 1
        if self.refetch is not None:
            await self.refetch.wait()
        self.seen.append("refetched")


@contextlib.asynccontextmanager
async def listening(fake: FakeOpenCode, **options: Any):
    listener = Listener(fake, **options)
    listener.stream.start()
    try:
        yield listener
    finally:
        await listener.stream.close()
        await listener.client.aclose()


async def test_events_come_in_order_after_the_refetch(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        for number in range(3):
            await fake.send(frame(number))
        await until(lambda: len(heard.seen) == 4)
        assert heard.seen == ["refetched", 0, 1, 2]
        assert fake.requests[0].headers["authorization"].startswith("Basic ")


async def test_what_comes_during_the_refetch_is_held_and_follows_it(fake):
    async with listening(fake) as heard:
        heard.refetch = asyncio.Event()
        await until(lambda: heard.connects)
        for number in range(3):
            await fake.send(frame(number))
        await asyncio.sleep(0.05)
        assert heard.seen == [] and not heard.stream.connected
        heard.refetch.set()
        # At once: not with the next chunk, which may be a heartbeat 10 s later.
        await until(lambda: len(heard.seen) == 4, 1)
        assert heard.seen == ["refetched", 0, 1, 2]
        await fake.send(frame(3))
        await until(lambda: heard.seen[-1] == 3)


async def test_too_much_during_a_refetch_begins_anew_instead_of_growing(fake):
    async with listening(fake, max_held_bytes=10_000) as heard:
        heard.refetch = asyncio.Event()
        await until(lambda: heard.connects)
        with contextlib.suppress(ConnectionError):
            for number in range(50):
                await fake.send(frame(number, "x" * 1000))
        await until(lambda: heard.connects > 1)
        heard.refetch.set()
        await until(lambda: heard.stream.connected)
        assert heard.seen == ["refetched"]


async def test_a_broken_stream_comes_back_with_a_refetch(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        fake.drop()
        await until(lambda: heard.connects == 2 and heard.stream.connected)
        await fake.send(frame(7))
        await until(lambda: heard.seen[-1] == 7)
        assert heard.seen == ["refetched", "refetched", 7] and len(heard.lost) == 1


async def test_a_stream_that_ends_comes_back(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        fake.streams[-1].write(b"0\r\n\r\n")
        await until(lambda: heard.connects == 2)


async def test_a_silent_stream_counts_as_dead(fake):
    async with listening(fake, silence=0.15) as heard:
        await until(lambda: heard.connects >= 2)
        assert isinstance(heard.lost[0], errors.OpenCodeUnreachable)


async def test_heartbeats_count_as_life(fake):
    async with listening(fake, silence=0.3) as heard:
        await until(lambda: heard.stream.connected)
        for _ in range(15):
            await fake.send(HEARTBEAT)
            await asyncio.sleep(0.05)
        assert heard.connects == 1 and heard.seen == ["refetched"]


async def test_a_failing_refetch_is_tried_again(fake):
    heard = Listener(fake)
    failures = [errors.OpenCodeError("no"), ValueError("no")]

    async def on_connect() -> None:
        if failures:
            raise failures.pop()
        heard.seen.append("refetched")

    heard.stream._on_connect = on_connect
    heard.stream.start()
    await until(lambda: heard.stream.connected)
    assert heard.seen == ["refetched"] and len(heard.lost) == 2
    await heard.stream.close()
    await heard.client.aclose()


async def test_a_dead_process_is_told_and_its_successor_found(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        port = int(fake.url.rsplit(":", 1)[1])
        await fake.stop()
        await until(lambda: any(isinstance(reason, ConnectionRefused) for reason in heard.lost))
        assert not heard.stream.connected
        fake._server = await asyncio.start_server(fake._serve, "127.0.0.1", port)
        await until(lambda: heard.stream.connected)


async def test_a_wanted_password_is_told(fake):
    fake.answers["GET", "/global/event"] = reply(status=401)
    async with listening(fake) as heard:
        await until(lambda: heard.lost)
        assert isinstance(heard.lost[0], errors.OpenCodeNeedsPassword) and heard.connects == 0


async def test_attempts_slow_down(fake):
    fake.answers["GET", "/global/event"] = reply(status=503)
    async with listening(fake, backoff=(0.02, 0.2)) as heard:
        await asyncio.sleep(0.6)
        assert 3 <= len(heard.lost) <= 12


async def test_an_event_without_end_is_left_out_and_the_next_comes(fake):
    async with listening(fake, max_event_bytes=50_000) as heard:
        await until(lambda: heard.stream.connected)
        for _ in range(20):
            await fake.send(b"x" * 10_000)
        await fake.send(b"\n\n" + frame(1))
        await until(lambda: heard.seen[-1] == 1)
        assert heard.stream.skipped == 1 and heard.connects == 1


async def test_what_is_not_understood_does_not_stop_the_stream(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        await fake.send(b"data: " + b"[" * 100_000 + b"\n\ndata: " + b'{"a":' * 201 + b"1" + b"}" * 201 + b"\n\n")
        await fake.send(b"data: {broken\n\ndata: [1]\n\n" + b'data: {"payload": 1}\n\n' + frame(1))
        await until(lambda: heard.seen[-1] == 1)
        assert heard.connects == 1


async def test_nothing_is_delivered_after_close(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        await heard.stream.close()
        with contextlib.suppress(ConnectionError):
            await fake.send(frame(1))
        await asyncio.sleep(0.05)
        assert heard.seen == ["refetched"] and not heard.stream.connected
        await heard.stream.close()


async def test_closing_during_the_refetch_ends_it(fake):
    async with listening(fake) as heard:
        heard.refetch = asyncio.Event()
        await until(lambda: heard.connects)
        await heard.stream.close()
        heard.refetch.set()
        await asyncio.sleep(0.02)
        assert heard.seen == []


async def test_a_burst_does_not_keep_the_event_loop(fake):
    async with listening(fake) as heard:
        await until(lambda: heard.stream.connected)
        deliver = heard._on_event

        def slow(event: dict[str, Any]) -> None:
            end = time.perf_counter() + 0.0005
            while time.perf_counter() < end:
                pass
            deliver(event)

        heard.stream._on_event = slow
        await fake.send(b"".join(frame(number) for number in range(2000)))  # a second of work
        turns = 0
        while heard.seen[-1] != 1999:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 60


@pytest.mark.parametrize("limit", [50_000])
async def test_memory_of_the_stream_is_bounded_by_the_event_limit(fake, limit):
    async with listening(fake, max_event_bytes=limit) as heard:
        await until(lambda: heard.stream.connected)
        tracemalloc.start()
        for _ in range(300):
            await fake.send(b"y" * 60_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10_000_000 and heard.connects == 1
