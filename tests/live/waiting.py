"""Waits for what a running agent does, with a deadline, and counts the OpenCodes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

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


def opencodes(under: Path) -> list[int]:
    """Pids of OpenCode processes whose working directory is ``under`` or below it.

    A child that is a copy of its OpenCode until it runs its own program is not one more.
    """
    found: dict[int, int] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith("opencode") and Path(process.cwd()).is_relative_to(under):
                found[process.pid] = process.ppid()
    return [pid for pid, parent in found.items() if parent not in found]
