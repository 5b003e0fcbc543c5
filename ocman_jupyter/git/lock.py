"""One at a time: whoever makes or removes a worktree of a name, across threads and processes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import PrivateLock

_POLL = 0.02
_SAY_AFTER = 1.0


@asynccontextmanager
async def only_one(
    settings: OcmanSettings, identity: str, name: str, waiting: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Hold the lock of the worktree folder ``name`` (a slug) of a repository.

    Other worktrees of the repository can be made meanwhile: a slow hook stops nobody else.  The lock
    goes with the process that holds it.  ``waiting`` is called once when it takes a while.

    Raises ``StateUnusable`` when the lock cannot be made.
    """
    repository = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    # Sixteen per repository, so that the folder does not fill up; a shared one only means waiting.
    part = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[0]
    lock = PrivateLock(settings, f"{repository}.{part}.worktrees.lock")
    waited = 0.0
    while not lock.acquire():
        if waiting and waited <= _SAY_AFTER < waited + _POLL:
            waiting()
        waited += _POLL
        await asyncio.sleep(_POLL)
    try:
        yield
    finally:
        lock.release()
