"""Ensure on a warm instance: against a bare round trip to it, and many at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import httpx

from . import repositories
from .measure import Row, at_most_times, interleaved, median, percentile
from .scene import Scene, now, told

LIMIT = 3.0
AT_ONCE = 100
QUIET = 0.05
"""Seconds before each call: OpenCode works on for some ms after it answered, which is not the next call's."""

# In a process of its own, because the state is where the environment says.
_COUNT = """
import asyncio, sys
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.opencode import discovery
from ocman_jupyter.settings import OcmanSettings

async def main(root, calls):
    made = []
    first = discovery.Discovery.__init__
    def remembered(self, *args, **more):
        first(self, *args, **more)
        made.append(self)
    discovery.Discovery.__init__ = remembered
    host = local_host(OcmanSettings.load())
    await host.instances.ensure(root)
    before = sum(one.scans for one in made)
    await asyncio.gather(*(host.instances.ensure(root) for _ in range(calls)))
    print(sum(one.scans for one in made) - before)
    await host.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def ensure(scene: Scene, repeat: int) -> list[Row]:
    """p50 of warm calls, interleaved with bare ones; then many at once, and the scans they took."""
    root = scene.repository("tiny")
    server = scene.server()
    opencode = scene.instance(server, root)
    calls = max(100, repeat * 20)
    with server.client() as rest:

        def ours(number: int) -> float:
            began = now()
            told(rest.post("api/ocman/ensure", json={"directory": str(root)}))
            return now() - began

        def bare(number: int) -> float:
            began = now()
            told(opencode.client.get("/global/health"))
            return now() - began

        interleaved(20, {"ours": ours, "bare": bare})
        scene.settle(opencode.pid, server.process.pid)
        figures = interleaved(calls, {"ours": ours, "bare": bare}, lambda: time.sleep(QUIET))
    together = asyncio.run(_at_once(server.url, server.token, str(root)))
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, str(root), str(AT_ONCE)],
        env=scene.env,
        capture_output=True,
        text=True,
        cwd=repositories.__file__.rsplit("/", 2)[0],
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    scans = int(done.stdout)
    case = "ensure"
    return [
        at_most_times(
            case,
            "warm, p50",
            median(figures["ours"]),
            "ms",
            "bare `GET /global/health`, p50",
            median(figures["bare"]),
            LIMIT,
            calls,
        ),
        Row(
            case,
            "warm, p99",
            percentile(figures["ours"], 0.99),
            "ms",
            "bare `GET /global/health`, p99",
            percentile(figures["bare"], 0.99),
            runs=calls,
        ),
        Row(case, f"{AT_ONCE} warm calls at once, until the last answer", together, "ms"),
        Row(
            case,
            f"process scans for {AT_ONCE} warm calls at once",
            scans,
            "",
            target="= 0",
            passed=scans == 0,
        ),
    ]


async def _at_once(url: str, token: str, root: str) -> float:
    limits = httpx.Limits(max_connections=AT_ONCE)
    headers = {"Authorization": f"token {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60, trust_env=False) as client:
        began = now()
        answers = await asyncio.gather(
            *(client.post("api/ocman/ensure", json={"directory": root}) for _ in range(AT_ONCE))
        )
        took = now() - began
    if len({told(answer)["pid"] for answer in answers}) != 1:
        raise RuntimeError("not all calls gave the same OpenCode")
    return took
