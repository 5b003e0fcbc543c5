"""The events of everything, as one stream: a server's WebSocket, or the bus of the host in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ServerUnreachable, Unauthorized
from .access import credentials, trust
from .connection import Server

if TYPE_CHECKING:
    import aiohttp

    from ..hosts.host import Host

Json = dict[str, Any]

BEAT = 20.0
"""Seconds between two signs of life; a server that misses one is gone."""


class Channel(Protocol):
    """A place in the stream.  It begins with a ``snapshot``; another one means that events were missed."""

    async def next(self) -> list[Json]:
        """Wait, then give what is ready, in order; empty when the stream has ended."""

    async def follow(self, sessions: set[str]) -> None:
        """Choose whose ``message.*`` events come.  Not before the first ``snapshot``."""


class _Bus:
    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription
        self._begun = False

    async def next(self) -> list[Json]:
        if not self._begun:
            self._begun = True
            return [{"type": "snapshot", "data": {}}]
        return [event.model_dump(mode="json") for event in await self._subscription.next()]

    async def follow(self, sessions: set[str]) -> None:
        self._subscription.follow(set(sessions))


@asynccontextmanager
async def of_host(host: Host) -> AsyncIterator[Channel]:
    """The bus of a host in this process."""
    async with host.events.subscribe() as (_, subscription):
        yield _Bus(subscription)


class _Socket:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def next(self) -> list[Json]:
        import aiohttp

        while True:
            frame = await self._socket.receive()
            if frame.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                return [json.loads(frame.data)]
            if frame.type == aiohttp.WSMsgType.ERROR:
                raise ServerUnreachable("The connection to the Jupyter server broke.")
            if frame.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED):
                return []

    async def follow(self, sessions: set[str]) -> None:
        await self._socket.send_str(json.dumps({"subscribe": {"sessions": sorted(sessions)[:1000]}}))


@asynccontextmanager
async def of_server(server: Server) -> AsyncIterator[Channel]:
    """The WebSocket of a Jupyter server.  Raises ``ServerUnreachable`` or ``Unauthorized``."""
    import aiohttp
    import yarl

    connector: aiohttp.BaseConnector
    if server.socket:
        connector = aiohttp.UnixConnector(path=server.socket)
    else:
        connector = aiohttp.TCPConnector(ssl=trust(server) or True)
    # As it is written: a server's base_url may hold what would be quoted in another way.
    address = yarl.URL(f"{server.url}api/ocman/events", encoded=True)
    try:
        # `trust_env` is off: no proxy of the environment ever sees the token.
        async with (
            aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as http,
            http.ws_connect(
                address,
                headers=credentials(server),
                heartbeat=BEAT,
                max_msg_size=0,
            ) as socket,
        ):
            yield _Socket(socket)
    except aiohttp.WSServerHandshakeError as error:
        if error.status in (401, 403) or 300 <= error.status < 400:
            raise Unauthorized(details={"status": error.status}) from None
        raise ServerUnreachable(
            f"The Jupyter server answered with status {error.status}.", details={"status": error.status}
        ) from None
    except (aiohttp.ClientError, OSError, asyncio.TimeoutError):
        raise ServerUnreachable(f"The Jupyter server at {server.url} does not answer.") from None
