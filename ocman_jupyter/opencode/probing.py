"""One look at an OpenCode: healthy, dead, wrong project, needs a password, or unsure.

Unsure (no answer in time, a reset, a 5xx) is never a reason to end or to replace anything.
"""

from __future__ import annotations

import asyncio
import enum
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .. import errors
from .client import ConnectionRefused, OpenCodeClient, Unsure
from .discovery import Belongs, belongs_to
from .processes import Process
from .records import Place

REFUSALS = 3
"""Tries until a process that refuses connections counts as dead."""
PAUSE = 0.2
"""Seconds between tries."""

Serves = Callable[[Place], Awaitable[bool]]
"""Whether a place is what this OpenCode should serve."""


class Verdict(enum.Enum):
    HEALTHY = "healthy"
    DEAD = "dead"
    WRONG_PROJECT = "wrong project"
    NEEDS_PASSWORD = "needs password"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Probe:
    verdict: Verdict
    version: str | None = None
    error: errors.OcmanError | None = None
    """Why it is not healthy, where an answer (or its lack) said so."""


async def look(
    client: OpenCodeClient,
    process: Process | None,
    serves: Serves,
    *,
    health_timeout: float,
    request_timeout: float,
    tries: int = 1,
) -> Probe:
    """Probe a server that ``process`` is believed to be.

    ``tries``: how often ``GET /global/health`` is asked while that is unsure, on a new connection each time.
    """
    refused = unsure = 0
    while True:
        if process is not None and not process.runs:
            return Probe(Verdict.DEAD)
        try:
            version = await client.health(timeout=health_timeout)
            break
        except ConnectionRefused as error:
            refused += 1
            if refused >= REFUSALS:
                return Probe(Verdict.DEAD, error=error)
        except Unsure as error:
            unsure += 1
            if unsure >= tries:
                gone = process is not None and not process.runs
                return Probe(Verdict.DEAD if gone else Verdict.UNSURE, error=error)
        except errors.OpenCodeNeedsPassword as error:
            return Probe(Verdict.NEEDS_PASSWORD, error=error)
        except errors.OpenCodeError as error:
            return Probe(Verdict.WRONG_PROJECT, error=error)  # no OpenCode at all
        await asyncio.sleep(PAUSE)
    try:
        place = await client.path(timeout=request_timeout)
    except ConnectionRefused as error:
        return Probe(Verdict.DEAD, version, error)
    except errors.OpenCodeNeedsPassword as error:
        return Probe(Verdict.NEEDS_PASSWORD, version, error)
    except errors.OcmanError as error:
        return Probe(Verdict.UNSURE, version, error)
    return Probe(Verdict.HEALTHY if await serves(place) else Verdict.WRONG_PROJECT, version)


def is_at(directory: str) -> Serves:
    """The place is exactly this directory (by real path)."""
    async def serves(place: Place) -> bool:
        return await same_place(place.directory or place.worktree, directory)

    return serves


async def same_place(one: str, other: str) -> bool:
    """Whether two paths are one directory, whatever links and spellings lead to it."""
    def same() -> bool:
        try:
            return os.path.samefile(one, other)
        except OSError:
            return os.path.realpath(one) == os.path.realpath(other)

    return one == other or await asyncio.to_thread(same)


def is_inside(belongs: Belongs) -> Serves:
    """The place is in the repository."""
    async def serves(place: Place) -> bool:
        return await belongs_to(belongs, place.directory or place.worktree)

    return serves
