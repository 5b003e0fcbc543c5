"""Many pages at once: ``python -m benchmarks.listeners URL COUNT SESSION…`` (token in ``JUPYTER_TOKEN``).

Opens COUNT event WebSockets that follow the sessions, prints ``ready``, and at the end of its input how
many frames came, as JSON.  A process of its own, so that it does not slow down who measures.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect


async def connect(url: str, token: str, sessions: list[str]) -> WebSocketClientConnection:
    """One page's connection; its snapshot is still to be read."""
    address = url.replace("http", "ws", 1) + "api/ocman/events"
    request = HTTPRequest(address, headers={"Authorization": f"token {token}"}, connect_timeout=30)
    connection = await websocket_connect(request)
    await connection.write_message(json.dumps({"subscribe": {"sessions": sessions}}))
    return connection


async def main(url: str, count: int, sessions: list[str]) -> None:
    token = os.environ.get("JUPYTER_TOKEN", "")
    connections = [await connect(url, token, sessions) for _ in range(count)]
    frames = 0

    async def read(connection: WebSocketClientConnection) -> None:
        nonlocal frames
        while await connection.read_message() is not None:
            frames += 1

    readers = [asyncio.ensure_future(read(connection)) for connection in connections]
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({"frames": frames, "closed": sum(reader.done() for reader in readers)}), flush=True)
    for reader in readers:
        reader.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
