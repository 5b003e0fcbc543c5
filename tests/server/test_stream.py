"""Server-sent events of one session: first byte, silence, cancellation, faults on the way."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from ocman_jupyter.errors import OpenCodeUnreachable
from ocman_jupyter.server import streams

SECONDS = 5


class Stream:
    """A script that reads a stream as it comes."""

    def __init__(self, fetch):
        self.text = ""
        self.headers = {}
        self.news = asyncio.Event()
        self.response = asyncio.ensure_future(
            fetch(
                "api",
                "ocman",
                "sessions",
                "ses_1",
                "stream",
                streaming_callback=self.take,
                header_callback=self.header,
                raise_error=False,
                request_timeout=30,
            )
        )

    def header(self, line):
        name, _, value = line.partition(":")
        self.headers[name.lower()] = value.strip()

    def take(self, chunk):
        self.text += chunk.decode()
        self.news.set()

    async def until(self, text):
        deadline = time.monotonic() + SECONDS
        while text not in self.text:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), max(0.01, deadline - time.monotonic()))


@pytest.fixture
def stream(jp_fetch):
    return lambda: Stream(jp_fetch)


async def test_the_first_byte_comes_at_once_and_no_proxy_holds_it(stream, machine):
    script = stream()
    await script.until(": stream\n\n")
    assert script.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert script.headers["x-accel-buffering"] == "no"
    assert "no-cache" in script.headers["cache-control"]


async def test_events_come_as_they_happen(stream, machine):
    script = stream()
    await script.until("session.updated")
    machine.tell(
        "message.delta", session_id="ses_1", message_id="m", part_id="p", field="text", delta="hel\nlo"
    )
    await script.until("message.delta")
    await script.until("\n\n")
    records = [part for part in script.text.split("\n\n") if part.startswith("id:")]
    fields = [dict(line.split(": ", 1) for line in record.splitlines()) for record in records]
    assert [one["event"] for one in fields] == ["session.updated", "message.delta"]
    data = json.loads(fields[1]["data"])
    assert data["data"]["delta"] == "hel\nlo"
    assert (data["type"], data["host"], data["seq"], fields[1]["id"]) == ("message.delta", "local", 2, "2")


async def test_a_silent_stream_shows_that_it_is_alive(stream, monkeypatch):
    monkeypatch.setattr(streams, "COMMENT_SECONDS", 0.05)
    script = stream()
    await script.until(": alive\n\n: alive\n\n")


async def test_a_reader_that_goes_away_ends_the_stream(jp_fetch, machine):
    with pytest.raises(Exception, match="Timeout"):
        await jp_fetch("api", "ocman", "sessions", "ses_1", "stream", request_timeout=0.5)
    deadline = time.monotonic() + SECONDS
    while machine.streams:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert machine.subscriptions == set()


async def test_the_stream_ends_with_the_server(stream, extension, machine):
    script = stream()
    await script.until("session.updated")
    await extension.stop_extension()
    response = await asyncio.wait_for(script.response, SECONDS)
    assert response.code == 200
    assert machine.streams == 0


async def test_an_unknown_session_is_a_typed_error_and_no_stream(ask, told):
    response = await ask("GET", "sessions/ses_none/stream")
    assert (response.code, told(response)["code"]) == (404, "no_such_session")


async def test_the_stream_ends_with_its_session(stream, machine):
    script = stream()
    await script.until("session.updated")
    machine.end_streams()
    response = await asyncio.wait_for(script.response, SECONDS)
    assert response.code == 200
    assert machine.streams == 0


async def test_an_error_on_the_way_is_told_in_the_stream(stream, machine):
    script = stream()
    await script.until("session.updated")
    machine.break_streams(OpenCodeUnreachable())
    await asyncio.wait_for(script.response, SECONDS)
    last = script.text.strip().split("\n\n")[-1]
    assert last.startswith("event: error\n")
    assert json.loads(last.split("data: ")[1])["code"] == "opencode_unreachable"
