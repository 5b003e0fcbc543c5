"""Events under load, and the server's event loop: what else a page asks must not wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from ocman_jupyter.demo.server import JupyterServer

from . import listing
from .listeners import connect
from .measure import Row, at_most, median, percentile
from .scene import OpenCode, Scene, now

CLIENTS = 50
STREAMS = 4
DELTAS = 200
"""A second, over all streams."""
SECONDS = 20
LIMIT = 50.0
"""Milliseconds, p99."""


class RawTimes:
    """When OpenCode itself said that a session is idle or that it asks."""

    def __init__(self, opencode: OpenCode) -> None:
        self.idle: dict[str, list[float]] = {}
        self.asked: dict[str, float] = {}
        self._opencode = opencode
        self._connected = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        self._connected.wait(30)

    def _read(self) -> None:
        idle = re.compile(r'"type":"session\.idle","properties":\{"sessionID":"(ses_\w+)"')
        asked = re.compile(r'"type":"permission\.asked","properties":\{"id":"(per_\w+)"')
        opencode = self._opencode
        with (
            contextlib.suppress(httpx.HTTPError, RuntimeError),
            httpx.stream("GET", f"{opencode.url}/global/event", auth=opencode.auth, timeout=None, trust_env=False) as s,
        ):
            for line in s.iter_lines():
                at = now()
                self._connected.set()
                if found := idle.search(line):
                    self.idle.setdefault(found[1], []).append(at)
                elif found := asked.search(line):
                    self.asked[found[1]] = at


async def probe_status(server: JupyterServer, pause: float = 0.02) -> AsyncIterator[float]:
    """Milliseconds of one ``GET /api/status`` after the other."""
    headers = {"Authorization": f"token {server.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30, trust_env=False) as client:
        while True:
            began = now()
            (await client.get("api/status")).raise_for_status()
            yield now() - began
            await asyncio.sleep(pause)


def start_streams(opencode: OpenCode, directory: Path, count: int, rate: float, seconds: float) -> list[str]:
    """Sessions that each stream ``rate`` small pieces of text a second."""
    sessions = [opencode.session(directory) for _ in range(count)]
    for session in sessions:
        opencode.prompt(session, f"STREAM {int(rate * seconds)} {rate:g}")
    return sessions


def events(scene: Scene, repeat: int) -> list[Row]:
    """50 pages that follow 200 deltas a second: what asks, status and the rest of the server wait for."""
    root = scene.repository("tiny")
    server = scene.server()
    opencode = scene.instance(server, root)
    raw = RawTimes(opencode)
    scene.settle(opencode.pid, server.process.pid)
    scene.say(f"{CLIENTS} pages, {DELTAS} deltas a second, {SECONDS} s …")
    streams = start_streams(opencode, root, STREAMS, DELTAS / STREAMS, SECONDS + 10)
    pages = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.listeners", server.url, str(CLIENTS), *streams],
        env={**scene.env, "JUPYTER_TOKEN": server.token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[1],
    )
    try:
        assert pages.stdout is not None
        if pages.stdout.readline().strip() != "ready":
            raise RuntimeError("the pages did not connect")
        seen, probes = asyncio.run(_watch(server, opencode, root))
        out, _ = pages.communicate()
    finally:
        pages.kill()
        pages.wait()
    heard = json.loads(out)
    added = [max(0.0, at - raw.asked[name]) for name, at in seen["asked"].items() if name in raw.asked]
    for session, times in seen["idle"].items():
        added += [max(0.0, at - first) for at, first in zip(times, raw.idle.get(session, []), strict=False)]
    case, load = "events", f"{CLIENTS} pages, {DELTAS} deltas a second"
    return [
        at_most(
            case,
            f"{load}: asks and status come later than from OpenCode, p99",
            percentile(added, 0.99),
            "ms",
            LIMIT,
            len(added),
        ),
        at_most(case, f"{load}: `/api/status`, p99", percentile(probes, 0.99), "ms", LIMIT, len(probes)),
        Row(case, f"{load}: `/api/status`, median", median(probes), "ms", runs=len(probes)),
        Row(case, f"{load}: frames to one page a second", heard["frames"] / CLIENTS / SECONDS, ""),
    ]


async def _watch(server: JupyterServer, opencode: OpenCode, root: Path) -> tuple[dict, list[float]]:
    """What one more page sees while short turns and asks go on, and what ``/api/status`` takes meanwhile."""
    page = await connect(server.url, server.token, [])
    seen: dict = {"idle": {}, "asked": {}}

    async def read() -> None:
        while (text := await page.read_message()) is not None:
            at = now()
            event = json.loads(text)
            data = event["data"]
            if event["type"] == "session.status" and data["status"] == "idle":
                seen["idle"].setdefault(data["id"], []).append(at)
            elif event["type"] == "ask.created":
                seen["asked"].setdefault(data["id"], at)
                await asyncio.to_thread(answer, data["session_id"], data["id"])

    def answer(session: str, ask: str) -> None:
        opencode.client.post(f"/session/{session}/permissions/{ask}", json={"response": "once"})

    probes: list[float] = []

    async def probe() -> None:
        async for took in probe_status(server):
            probes.append(took)

    async def work() -> None:
        talker, asker = (
            await asyncio.to_thread(opencode.session, root),
            await asyncio.to_thread(opencode.session, root),
        )
        for number in range(SECONDS):
            await asyncio.to_thread(opencode.prompt, talker, f"SAY hello {number}")
            if number % 2 == 0:
                await asyncio.to_thread(opencode.prompt, asker, "READ /etc/hostname")
            await asyncio.sleep(1)

    reading, probing = asyncio.ensure_future(read()), asyncio.ensure_future(probe())
    try:
        await work()
    finally:
        for task in (reading, probing):
            task.cancel()
        await asyncio.gather(reading, probing, return_exceptions=True)
        page.close()
    return seen, probes


def event_loop(scene: Scene, repeat: int) -> list[Row]:
    """``/api/status`` while 50 worktrees are listed again and again and five sessions stream."""
    root = scene.repository("small-files")
    server = scene.server()
    opencode = scene.instance(server, root)
    paths = listing.make_worktrees(root, listing.WORKTREES)
    rounds = max(20, repeat)  # for some hundred probes: a percentile of few is chance
    scene.settle(opencode.pid, server.process.pid)
    scene.say(f"{rounds} full lists of {listing.WORKTREES} worktrees while 5 sessions stream …")
    start_streams(opencode, root, 5, 20, 120)
    probes: list[float] = []

    async def run() -> None:
        async def probe() -> None:
            async for took in probe_status(server):
                probes.append(took)

        def lists() -> None:
            with server.client() as rest:
                for number in range(rounds):
                    for path in paths:  # no list may be answered from memory
                        (path / "package00" / "part0" / "module0000.py").write_text(f"changed = {number}\n")
                    listing.read_list(rest, root, changes=True)

        probing = asyncio.ensure_future(probe())
        try:
            await asyncio.to_thread(lists)
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)

    asyncio.run(run())
    what = f"`/api/status` while {listing.WORKTREES} worktrees are listed and 5 sessions stream"
    return [
        at_most("event loop", f"{what}, p99", percentile(probes, 0.99), "ms", LIMIT, len(probes)),
        Row("event loop", f"{what}, median", median(probes), "ms", runs=len(probes)),
    ]
