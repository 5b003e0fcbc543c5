"""Paths compared as the file system sees them: real, and by components."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Container, Iterable
from datetime import datetime, timezone


def deepest(path: str, roots: Container[str]) -> str | None:
    """The nearest of ``roots`` (real paths) that is ``path`` or above it."""
    while path not in roots:
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent
    return path


def real(path: str) -> str:
    """The real path, also of something that is gone."""
    return os.path.realpath(path)


def rfc3339(milliseconds: float) -> str:
    """Milliseconds since the epoch as RFC 3339 UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds").replace(
        "+00:00", "Z"
    )


async def existing(paths: Iterable[str]) -> set[str]:
    """Those of these real paths that are directories; asked in a worker thread, since a disk may be slow.

    One that has become a link to somewhere else is not there any more.
    """
    asked = set(paths)
    return await asyncio.to_thread(lambda: {p for p in asked if os.path.isdir(p) and os.path.realpath(p) == p})


async def exists(path: str) -> bool:
    """Whether the real path ``path`` is a directory."""
    return bool(await existing([path]))
