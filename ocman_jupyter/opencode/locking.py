"""The lock by which one program at a time looks for, launches or stops the OpenCode of a repository."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .. import errors
from ..settings import OcmanSettings
from ..store import PrivateLock
from .flights import Say

STEP = 0.05
"""Seconds between two looks at another program's lock."""
MARGIN = 30.0
"""Seconds that another program may need besides its launch."""


@asynccontextmanager
async def locked(settings: OcmanSettings, identity: str, say: Say) -> AsyncIterator[None]:
    """Hold the repository's lock, which ends with the program that holds it.

    Raises ``OpenCodeUnreachable`` when another program holds it for longer than a launch can take,
    ``StateUnusable`` when the lock cannot be made.
    """
    lock = await asyncio.to_thread(PrivateLock, settings, f"{digest(identity)}.instance.lock")
    begun = time.monotonic()
    told = 0
    while not await asyncio.to_thread(lock.acquire):
        waited = time.monotonic() - begun
        if waited > 2 * settings.launch_timeout + MARGIN:
            raise errors.OpenCodeUnreachable(
                "Another program has been starting or stopping this OpenCode for too long.",
                details={"lock": str(lock.path)})
        if int(waited) > told:
            told = int(waited)
            say(f"Waiting for another program that starts or stops OpenCode ({told} s)")
        await asyncio.sleep(STEP)
    try:
        yield
    finally:
        lock.release()


def digest(identity: str) -> str:
    """16 letters that stand for a repository in file names."""
    return hashlib.sha256(os.fsencode(identity)).hexdigest()[:16]
