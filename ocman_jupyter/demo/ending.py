"""The end of a demo: stops its OpenCode, finds what still runs.

``python -m ocman_jupyter.demo.ending`` stops every OpenCode that was launched under its environment;
a process of its own, because the environment says where the state of a demo is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from ocman_jupyter.settings import OcmanSettings

from .place import MARK, Place


def stop_instances(env: Mapping[str, str], timeout: float = 60, say: Callable[[str], None] | None = None) -> str | None:
    """Stop every OpenCode that was launched under ``env``; ``None``, or why that was not possible.

    ``say`` gets a line for each: whose it is, and what is cut short.
    """
    argv = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(
            argv, env=dict(env), timeout=timeout, start_new_session=True,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"OpenCode was not stopped within {timeout:g} s"
    for line in done.stdout.splitlines() if say else ():
        say(line)
    return None if done.returncode == 0 else done.stderr.strip()[-1000:] or f"exit code {done.returncode}"


async def _stop_all(settings: OcmanSettings) -> None:
    from ocman_jupyter.hosts.local import local_host

    host = local_host(settings)
    try:
        for instance in await host.instances.list():
            if instance.owner == "ocman":
                sessions = (await host.sessions.list(instance.repo_root)).sessions
                print(_ending(instance.repo_root, [session.status for session in sessions]), flush=True)
                await host.instances.stop(instance.repo_root, force=True)
    finally:
        await host.close()


def _ending(root: str, statuses: list[str]) -> str:
    parts = [f"ending the OpenCode of {root}"]
    for status, one, many in (
        ("needs_you", "1 session waits for an answer", "{} sessions wait for an answer"),
        ("busy", "1 session is at work", "{} sessions are at work"),
    ):
        if count := statuses.count(status):
            parts.append(one if count == 1 else many.format(count))
    return ", ".join(parts)


def opencode_processes(place: Place) -> list[psutil.Process]:
    """The OpenCode processes that work in the demo's folder.

    A child that is a copy of its OpenCode until it runs its own program is not one more.
    """
    found: dict[int, tuple[psutil.Process, int]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith("opencode") and place.folder in Path(process.cwd()).parents:
                found[process.pid] = (process, process.ppid())
    return [process for process, parent in found.values() if parent not in found]


def demo_processes(place: Place) -> list[psutil.Process]:
    """Every process that the demo started and that still runs."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ended = process.status() == psutil.STATUS_ZOMBIE
            if process.pid != os.getpid() and not ended and process.environ().get(MARK) == str(place.folder):
                found.append(process)
    return found


def end_the_rest(place: Place, patience: float = 10.0) -> list[str]:
    """Wait until the demo's processes are gone, kill what stays; what had to be killed."""
    deadline = time.monotonic() + patience
    while (left := demo_processes(place)) and time.monotonic() < deadline:
        time.sleep(0.1)
    told = []
    for process in left:
        with contextlib.suppress(psutil.Error):
            told.append(f"{process.pid} {process.name()}")
            process.kill()
    return told


def main() -> int:
    settings = OcmanSettings.load()
    if MARK not in os.environ or not Path(settings.data_dir).exists():
        return 0
    asyncio.run(_stop_all(settings))
    shutil.rmtree(settings.runtime_dir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
