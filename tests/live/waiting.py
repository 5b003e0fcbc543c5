"""Waits for what a running agent does, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ocman_jupyter.hosts.host import Host


async def eventually(look: Callable[[], Awaitable[Any]], seconds: float = 60.0) -> Any:
    """The first true answer of ``look``; fails after ``seconds``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        found = await look()
        if found:
            return found
        assert loop.time() < deadline, f"still {found!r} after {seconds} s"
        await asyncio.sleep(0.1)


async def answer_of(host: Host, session_id: str, seconds: float = 90.0) -> str:
    """The last text that the agent said, once its turn is over."""

    async def done() -> str | None:
        if (await host.sessions.get(session_id)).status not in ("idle", "error"):
            return None
        messages = (await host.sessions.messages(session_id))["messages"]
        texts = [
            part["text"] for message in messages if message["info"]["role"] == "assistant"
            for part in message["parts"] if part["type"] == "text" and part.get("text")
        ]
        return texts[-1] if texts else None

    return await eventually(done, seconds)
