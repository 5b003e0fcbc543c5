"""Finds the OpenCode processes of this user that listen here, and those of them in one repository."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import processes
from .processes import Listener, Process

if TYPE_CHECKING:
    import psutil

Belongs = Callable[[str], "Awaitable[bool] | bool"]
"""Whether a directory is in the repository that is asked about."""


@dataclass(frozen=True)
class Found:
    """An OpenCode process that listens.  Whether it serves what its directory says is for a probe to tell."""

    process: Process
    started_at: float
    """Seconds since 1970."""
    cwd: str
    listeners: tuple[Listener, ...]

    @property
    def pid(self) -> int:
        return self.process.pid


class Discovery:
    """Looks through the processes; callers at the same time share one look.

    ``scans`` counts the looks.
    """

    def __init__(self) -> None:
        self.scans = 0
        self._scan: asyncio.Task[list[Found]] | None = None

    async def find(self, cwd: str, belongs: Belongs) -> list[Found]:
        """Those inside the repository: in its main checkout ``cwd`` first, then the oldest first."""
        found = [one for one in await self.all() if await belongs_to(belongs, one.cwd)]
        return sorted(found, key=lambda one: (one.cwd != cwd, one.started_at, one.pid))

    async def all(self) -> list[Found]:
        """Every one of this user."""
        if self._scan is None or self._scan.done():
            self.scans += 1
            self._scan = asyncio.get_running_loop().create_task(asyncio.to_thread(scan))
        return await asyncio.shield(self._scan)


async def belongs_to(belongs: Belongs, directory: str) -> bool:
    """What the caller says of a directory; one that cannot be looked at belongs to nobody."""
    try:
        answer = belongs(directory)
        return bool(await answer) if inspect.isawaitable(answer) else bool(answer)
    except Exception:
        return False


def scan() -> list[Found]:
    """Look at every process of this user once.  Blocks for some milliseconds."""
    import psutil

    user = os.getuid()
    found = []
    for process in psutil.process_iter():
        try:
            with process.oneshot():
                if process.uids().real != user or not _is_opencode(process):
                    continue
                cwd = process.cwd()
                started = process.create_time()
        except (psutil.Error, OSError):
            continue
        who = processes.current(process.pid)
        listeners = processes.listeners(process.pid) if who and cwd else []
        if who and listeners:
            found.append(Found(who, started, os.path.realpath(cwd), tuple(listeners)))
    return found


def _is_opencode(process: psutil.Process) -> bool:
    """By name, or by the first words of its command: a shim runs it through an interpreter."""
    import psutil

    if process.name().startswith("opencode"):
        return True
    try:
        words = process.cmdline()[:2]
    except (psutil.Error, OSError):
        return False
    return any(os.path.basename(word).startswith("opencode") for word in words)
