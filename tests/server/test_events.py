"""The events WebSocket: order, choice, slow and hostile clients, gaps, and its end."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest
from tornado.httpclient import HTTPClientError

from ocman_jupyter.server import streams
from tests.server.fake_host import ask as an_ask
from tests.server.fake_host import session as a_session

SECONDS = 5


async def read(ws, kind=None):
    """The next frame (of this kind), parsed."""
    while True:
        message = await asyncio.wait_for(ws.read_message(), SECONDS)
        assert message is not None, "the server closed the WebSocket"
        frame = json.loads(message)
        if kind is None or frame["type"] == kind:
            return frame


async def until(condition, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


@pytest.fixture
def connect(jp_ws_fetch):
    async def open_one(**more):
        ws = await jp_ws_fetch("api", "ocman", "events", **more)
        snapshot = await read(ws)
        assert snapshot["type"] == "snapshot"
        return ws, snapshot

    return open_one


async def test_the_snapshot_comes_first_and_numbers_grow(connect, machine):
    ws, snapshot = await connect()
    assert snapshot["host"] == "local" and snapshot["seq"] == 1
    assert set(snapshot["data"]) == {"instances", "sessions", "asks", "repositories"}
    assert snapshot["data"]["sessions"][0]["id"] == "ses_1"
    machine.tell("session.status", id="ses_1", directory="/r", status="busy")
    machine.tell("ask.created", **an_ask("per_2").model_dump())
    machine.tell("worktree.removed", path="/w", repo_root="/r")
    frames = [await read(ws) for _ in range(3)]
    assert [frame["type"] for frame in frames] == ["session.status", "ask.created", "worktree.removed"]
    assert [frame["seq"] for frame in frames] == [2, 3, 4]
    assert all(set(frame) == {"type", "host", "seq", "data"} for frame in frames)
    assert frames[0]["data"] == {"id": "ses_1", "directory": "/r", "status": "busy"}
    ws.close()


async def test_numbers_are_each_connections_own(connect, machine):
    first, _ = await connect()
    machine.tell("instance.changed", state="running")
    assert (await read(first))["seq"] == 2
    second, _ = await connect()
    machine.tell("instance.changed", state="stopped")
    assert ((await read(first))["seq"], (await read(second))["seq"]) == (3, 2)


async def test_message_events_come_only_from_chosen_sessions(connect, machine):
    ws, _ = await connect()
    delta = {"message_id": "m", "part_id": "p", "field": "text", "delta": "x"}
    machine.tell("message.delta", session_id="ses_1", **delta)
    machine.tell("session.status", id="ses_1", status="busy")
    assert (await read(ws))["type"] == "session.status"  # by default none
    await ws.write_message(json.dumps({"subscribe": {"sessions": ["ses_1"]}}))
    await until(lambda: any(one.followed == {"ses_1"} for one in machine.subscriptions))
    machine.tell("message.delta", session_id="ses_2", **delta)
    machine.tell("message.delta", session_id="ses_1", **delta)
    frame = await read(ws)
    assert (frame["type"], frame["data"]["session_id"]) == ("message.delta", "ses_1")
    await ws.write_message(json.dumps({"subscribe": {"sessions": []}}))
    await until(lambda: all(one.followed == set() for one in machine.subscriptions))


BAD = [
    "",
    "{",
    "[]",
    "null",
    "1",
    '"x"',
    "{}",
    '{"subscribe": null}',
    '{"subscribe": {}}',
    '{"subscribe": {"sessions": "ses_1"}}',
    '{"subscribe": {"sessions": [1]}}',
    '{"surprise": 1}',
    '{"subscribe": {"sessions": [], "x": 1}}',
    '{"subscribe": {"sessions": ["\\ud800"]}}',
    '{"subscribe": {"sessions": ["a\\u0000"]}}',
    '{"a":' * 5000,
    json.dumps({"subscribe": {"sessions": ["x"] * 5000}}),
]


async def test_bad_messages_get_an_error_frame_and_nothing_breaks(connect, machine):
    ws, _ = await connect()
    for message in BAD:
        await ws.write_message(message)
        frame = await read(ws)
        assert (frame["type"], frame["data"]["code"]) == ("error", "invalid_request"), message[:60]
    await ws.write_message(bytes(range(256)), binary=True)
    assert (await read(ws))["type"] == "error"
    machine.tell("session.status", id="ses_1", status="idle")
    assert (await read(ws))["type"] == "session.status"


async def test_progress_of_a_long_operation_is_told_to_every_page(connect, ask, machine):
    first, _ = await connect()
    second, _ = await connect()
    await ask("POST", "worktrees", {"directory": "/r", "branch": "b", "request_id": "op-1"})
    for ws in (first, second):
        frame = await read(ws, "progress")
        assert frame["host"] == "local"
        assert frame["data"] == {
            "operation": "op-1",
            "message": "Starting OpenCode",
            "fraction": 0.5,
            "directory": "/r",
        }
    await ask("POST", "ensure", {"directory": "/r"})
    assert (await read(first, "progress"))["data"]["operation"] not in ("", "op-1")


async def test_progress_may_come_from_any_thread(connect, extension):
    ws, _ = await connect()
    tell = extension.backend.hub.progress("local", "/r", "op")
    await asyncio.get_running_loop().run_in_executor(None, tell, "From a thread", None)
    assert (await read(ws, "progress"))["data"]["message"] == "From a thread"


async def test_after_a_gap_comes_a_new_snapshot(connect, machine):
    ws, _ = await connect()
    machine.known["ses_9"] = a_session("ses_9")
    machine.break_streams(ConnectionError("gone"))
    frame = await read(ws)
    assert (frame["type"], frame["seq"]) == ("snapshot", 2)
    assert "ses_9" in [one["id"] for one in frame["data"]["sessions"]]
    machine.tell("session.status", id="ses_9", status="idle")
    assert (await read(ws))["data"]["id"] == "ses_9"


async def test_a_stream_that_the_host_ended_is_taken_up_again(connect, machine):
    ws, _ = await connect()
    machine.end_streams()
    assert (await read(ws))["type"] == "snapshot"
    assert len([name for name, _ in machine.calls if name == "subscribe"]) == 2  # and did not spin


async def test_what_a_page_chose_survives_a_gap(connect, machine):
    ws, _ = await connect()
    await ws.write_message(json.dumps({"subscribe": {"sessions": ["ses_1"]}}))
    await until(lambda: any(one.followed == {"ses_1"} for one in machine.subscriptions))
    machine.break_streams(ConnectionError("gone"))
    assert (await read(ws))["type"] == "snapshot"
    assert [one.followed for one in machine.subscriptions] == [{"ses_1"}]


async def test_a_closed_page_leaves_nothing_behind(connect, machine, extension):
    ws, _ = await connect()
    assert len(machine.subscriptions) == 1
    ws.close()
    await until(lambda: not machine.subscriptions and not extension.backend.hub.feeds)


class Slow:
    """A WebSocket client that reads nothing after its snapshot, on a socket with a small buffer."""

    def __init__(self, port, path, token):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Authorization: token {token}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.socket.setblocking(False)
        self.pending = b""

    async def frames(self, enough):
        """All text frames until ``enough(frame)``."""
        loop = asyncio.get_running_loop()
        found = []
        while not (found and enough(found[-1])):
            self.pending += await asyncio.wait_for(loop.sock_recv(self.socket, 1 << 16), SECONDS)
            if self.pending.startswith(b"HTTP"):
                if b"\r\n\r\n" not in self.pending:
                    continue
                self.pending = self.pending.split(b"\r\n\r\n", 1)[1]
            while (frame := self._frame()) is not None:
                if frame:
                    found.append(json.loads(frame))
        return found

    def _frame(self):
        if len(self.pending) < 2:
            return None
        size, start = self.pending[1], 2
        if size in (126, 127):
            width = 2 if size == 126 else 8
            start += width
            size = int.from_bytes(self.pending[2:start], "big")
        if len(self.pending) < start + size:
            return None
        text = self.pending[0] & 0x0F == 1
        frame, self.pending = self.pending[start : start + size], self.pending[start + size :]
        return frame if text else b""


async def test_a_slow_client_fills_no_buffer_and_loses_no_edge(
    connect, machine, extension, jp_http_port, jp_base_url, jp_auth_header
):
    slow = Slow(jp_http_port, f"{jp_base_url}api/ocman/events", jp_auth_header["Authorization"].split()[1])
    await until(lambda: len(machine.subscriptions) == 1)
    (place,) = machine.subscriptions
    place.follow({"ses_1"})
    quick, _ = await connect()
    filler = "x" * 20_000
    for number in range(300):
        machine.tell(
            "message.delta", session_id="ses_1", message_id="m", part_id="p", field="text", delta=filler
        )
        machine.tell("session.updated", id="ses_1", title=f"title {number}", filler=filler)
        if number % 50 == 0:
            machine.tell("ask.created", **an_ask(f"per_{number}").model_dump())
        machine.tell("session.status", id="ses_1", status="busy" if number % 2 else "idle")
        await asyncio.sleep(0)
    machine.tell("session.status", id="ses_1", status="error")

    # The others do not wait for it.
    while (await read(quick, "session.status"))["data"]["status"] != "error":
        pass
    # What waits for it waits once, coalesced: not 300 records of 20 kB in the server.
    assert place.most < 20
    (handler,) = [feed for feed in extension.backend.hub.feeds if place in feed._subscriptions.values()]
    assert handler._sequence < 100

    frames = await slow.frames(lambda frame: frame["data"].get("status") == "error")
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    asks = {frame["data"]["id"] for frame in frames if frame["type"] == "ask.created"}
    assert asks == {f"per_{number}" for number in range(0, 300, 50)}
    text = "".join(frame["data"]["delta"] for frame in frames if frame["type"] == "message.delta")
    assert len(text) == 300 * len(filler)
    titles = [frame["data"]["title"] for frame in frames if frame["type"] == "session.updated"]
    assert titles[-1] == "title 299"
    slow.socket.close()


async def test_a_client_that_never_reads_its_error_frames_is_not_listened_to(
    machine, extension, http_server_client, jp_http_port, jp_base_url, jp_auth_header
):
    """Its own bad messages must not grow a buffer in the server."""
    slow = Slow(jp_http_port, f"{jp_base_url}api/ocman/events", jp_auth_header["Authorization"].split()[1])
    await until(lambda: len(extension.backend.hub.feeds) == 1)
    (feed,) = extension.backend.hub.feeds
    bad = b"\x81\x82\x00\x00\x00\x00{}"
    loop = asyncio.get_running_loop()

    async def flood():
        while True:
            await loop.sock_sendall(slow.socket, bad * 1000)

    flooding = asyncio.ensure_future(flood())
    last = -1
    deadline = time.monotonic() + SECONDS
    while feed._sequence != last:
        assert time.monotonic() < deadline, "the server goes on answering a client that does not read"
        last = feed._sequence
        await asyncio.sleep(0.3)
    flooding.cancel()
    slow.socket.close()


async def test_the_stream_ends_when_the_login_does(connect, jp_serverapp, monkeypatch):
    monkeypatch.setattr(streams, "AUTH_CHECK_SECONDS", 0.05)
    ws, _ = await connect()
    jp_serverapp.identity_provider.token = "another"
    assert await asyncio.wait_for(ws.read_message(), SECONDS) is None
    assert ws.close_code == 1008


async def test_the_stream_ends_when_the_authorizer_says_no(connect, jp_serverapp, monkeypatch):
    monkeypatch.setattr(streams, "AUTH_CHECK_SECONDS", 0.05)
    ws, _ = await connect()
    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", lambda *args: False)
    assert await asyncio.wait_for(ws.read_message(), SECONDS) is None
    assert ws.close_code == 1008


async def test_a_login_that_stays_keeps_the_stream(connect, machine, monkeypatch):
    monkeypatch.setattr(streams, "AUTH_CHECK_SECONDS", 0.02)
    ws, _ = await connect()
    await asyncio.sleep(0.2)  # ten looks at the login
    machine.tell("session.status", id="ses_1", status="idle")
    assert (await read(ws))["type"] == "session.status"


async def test_the_stream_ends_with_the_server(connect, extension, machine):
    ws, _ = await connect()
    await extension.stop_extension()
    assert await asyncio.wait_for(ws.read_message(), SECONDS) is None
    assert ws.close_code == 1001
    assert machine.closed and not machine.subscriptions


async def test_a_plain_request_is_told_that_this_is_a_websocket(ask, told):
    response = await ask("GET", "events")
    assert (response.code, told(response)["code"]) == (400, "invalid_request")
    response = await ask("GET", "events", params={"surprise": "1"})
    assert (response.code, told(response)["details"]["field"]) == (400, "surprise")


async def test_unknown_parameters_are_refused_before_the_upgrade(jp_ws_fetch):
    with pytest.raises(HTTPClientError) as refused:
        await jp_ws_fetch("api", "ocman", "events", params={"surprise": "1"})
    assert refused.value.code == 400


async def test_the_token_in_the_query_opens_the_stream(jp_ws_fetch, jp_serverapp):
    """JupyterLab's WebSockets carry the token so."""
    token = jp_serverapp.identity_provider.token
    ws = await jp_ws_fetch(
        "api", "ocman", "events", params={"token": token}, headers={"Authorization": "none"}
    )
    assert (await read(ws))["type"] == "snapshot"


async def test_an_event_is_serialised_once_for_all_pages(connect, machine, extension, monkeypatch):
    from ocman_jupyter.server import events

    pages = [(await connect())[0] for _ in range(5)]
    counted = []
    encode = events.encode
    monkeypatch.setattr(events, "encode", lambda value: counted.append(value) or encode(value))
    machine.tell("session.updated", id="ses_1", title="once")
    for ws in pages:
        assert (await read(ws))["data"]["title"] == "once"
    assert [value for value in counted if isinstance(value, dict)] == [{"id": "ses_1", "title": "once"}]
