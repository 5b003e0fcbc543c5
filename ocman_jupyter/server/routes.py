"""Every address below ``api/ocman``."""

from __future__ import annotations

from typing import Any

from . import instances, machine, sessions, streams, worktrees
from .base import MissingHandler

BASE = "/api/ocman"

ROUTES: list[tuple[str, type[Any]]] = [
    *machine.ROUTES,
    *instances.ROUTES,
    *worktrees.ROUTES,
    *sessions.ROUTES,
    *streams.ROUTES,
]
"""Address below the base, as openapi.yaml writes it, and its handler."""


def handlers() -> list[tuple[str, type[Any]]]:
    """What the server registers: a pattern below its base URL, and the handler."""
    found = [(f"{BASE}/{address}".replace("{id}", "([^/]+)"), handler) for address, handler in ROUTES]
    return [*found, (rf"{BASE}(?:/.*)?", MissingHandler)]
