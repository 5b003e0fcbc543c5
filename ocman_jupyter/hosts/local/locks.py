"""Locks that hold across all processes of the user."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...settings import OcmanSettings
from ...store import PrivateLock


@asynccontextmanager
async def directory_lock(settings: OcmanSettings, directory: str) -> AsyncIterator[None]:
    """Only one at a time opens a session in ``directory`` (a real path).

    Raises ``StateUnusable`` when the lock cannot be made.
    """
    name = hashlib.sha256(directory.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    lock = PrivateLock(settings, f"{name}.session.lock")
    while not lock.acquire():
        await asyncio.sleep(0.05)
    try:
        yield
    finally:
        lock.release()
