"""A stand-in for OpenCode's server that can misbehave in every way a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .world import world  # noqa: F401  a fixture for all tests here


@dataclass
class Request:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Which connection it came on."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def reply(
    body: Any = None, status: int = 200, headers: dict[str, str] | None = None, raw: bytes | None = None
) -> Answer:
    """An ordinary answer."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        data = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await writer.drain()

    return answer


async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
    """Never an answer."""
    await asyncio.sleep(3600)


async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
    """The connection goes away in the middle of the answer."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
    await writer.drain()
    writer.transport.abort()


class FakeOpenCode:
    """Answers ``answers[(method, path)]``, else 404; the events of ``/global/event`` come by :meth:`send`."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Answer] = {
            ("GET", "/global/health"): reply({"healthy": True, "version": "1.18.33"}),
            ("GET", "/global/event"): self._events,
        }
        self.requests: list[Request] = []
        self.streams: list[asyncio.StreamWriter] = []
        self.opened = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _events(self, request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        self.streams.append(writer)
        await self.send({"payload": {"type": "server.connected", "properties": {}}}, writer)
        await asyncio.sleep(3600)

    async def send(self, event: dict[str, Any] | bytes, writer: asyncio.StreamWriter | None = None) -> None:
        """Send an event (or raw bytes) on the newest stream."""
        target = writer or self.streams[-1]
        data = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        target.write(b"%x\r\n%s\r\n" % (len(data), data))
        await target.drain()

    def drop(self) -> None:
        """Break the newest stream."""
        self.streams[-1].transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        connection = self.opened
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path, _, query = target.partition("?")
                request = Request(method, path, query, headers, body, connection)
                self.requests.append(request)
                answer = self.answers.get((method, path), reply({"name": "NotFoundError"}, 404))
                await answer(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(Exception):
                writer.close()


@pytest.fixture
def fake(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[FakeOpenCode]:
    """A running stand-in."""
    server = FakeOpenCode()
    jp_asyncio_loop.run_until_complete(server.start())
    yield server
    jp_asyncio_loop.run_until_complete(server.stop())


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> Any:
    """Wait for a condition to hold, at most ``seconds``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert loop.time() < deadline, "it did not come about in time"
        await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def all_closed(connections_closed: list[object]) -> None:
    """What is done to OpenCode leaves no connection behind."""
