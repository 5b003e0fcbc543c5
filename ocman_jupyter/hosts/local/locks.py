"""Locks that hold across all processes of the user."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ...settings import OcmanSettings


@asynccontextmanager
async def directory_lock(settings: OcmanSettings, directory: str) -> AsyncIterator[None]:
    """Only one at a time opens a session in ``directory`` (a real path)."""
    from filelock import FileLock, Timeout

    folder = settings.private_dir(str(Path(settings.data_dir) / "locks"))
    name = hashlib.sha256(directory.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    lock = FileLock(folder / f"{name}.session.lock", thread_local=False)
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            await asyncio.sleep(0.05)
    try:
        yield
    finally:
        lock.release()
