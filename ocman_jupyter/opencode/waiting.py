"""Waits for a launched OpenCode: its address, its first answer, and that it serves the right directory."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .. import errors
from . import processes
from .client import OpenCodeClient, Unsure
from .foreign import server_url
from .launcher import Launcher, Started, tail
from .probing import same_place
from .processes import Process
from .registry import Record

STEP = 0.05
"""Seconds between two looks at the process and its log."""
SOCKETS_STEP = 0.25
"""Seconds between two looks at what it listens on, which cost more."""
TRY = 1.0
"""Seconds for one request for health: the first to a new screen hangs, one on a new connection does not."""

PLACE_FACTOR = 2.0
"""How many times the time for a start the first answer about the directory may take."""

_NOT_YET = (errors.OpenCodeUnreachable, errors.OpenCodeError, errors.OpenCodeNeedsPassword)

_ADDRESS = re.compile(r"listening on (https?://\S+)")


@dataclass(frozen=True)
class Ready:
    """An OpenCode that answers."""

    url: str
    port: int
    process: Process
    """The one that listens: where a shim was launched, its child."""
    version: str
    client: OpenCodeClient


async def wait_until_ready(
    record: Record,
    started: Started,
    launcher: Launcher,
    *,
    seconds: float,
    connect: Callable[[str], OpenCodeClient],
) -> Ready:
    """Wait up to ``seconds``.  Raises ``LaunchFailed`` as soon as the process ends, and ``LaunchTimeout``."""
    deadline = time.monotonic() + seconds
    sockets_at = 0.0
    doubt: errors.OcmanError | None = None
    while True:
        now = time.monotonic()
        if now >= deadline:
            raise errors.LaunchTimeout(
                f"OpenCode did not answer within {seconds:.0f} s and was stopped.",
                details=await _details(record, started, launcher, doubt))
        if not started.process.runs:
            raise await _ended(record, started, launcher)
        url = await asyncio.to_thread(_announced, record.log_path)
        where = None
        if url is not None or now >= sockets_at:
            where = await asyncio.to_thread(_listening, started.process.pid, url)
            sockets_at = now + SOCKETS_STEP
        if where is None:
            await asyncio.sleep(STEP)
            continue
        process, url, port = where
        client = connect(url)
        try:
            version = await client.health(timeout=min(TRY, max(0.05, deadline - time.monotonic())))
            await _check_place(record, started, launcher, client, process, seconds)
        except errors.OcmanError as error:
            await client.aclose()
            if not isinstance(error, _NOT_YET):
                raise
            doubt = error  # not yet, or not this port: ask again on a new connection
            await asyncio.sleep(STEP)
            continue
        except BaseException:
            await client.aclose()
            raise
        return Ready(url, port, process, version, client)


def _announced(log_path: str) -> str | None:
    """The address that `opencode serve` prints."""
    match = _ADDRESS.search(tail(log_path))
    try:
        return server_url(match[1].rstrip("/.,")) if match else None
    except ValueError:
        return None  # somebody else's words: its sockets tell


def _listening(pid: int, url: str | None) -> tuple[Process, str, int] | None:
    """Who of the launched processes listens, and where; with ``url``: there."""
    port = urlsplit(url).port if url else None
    family = processes.family(pid)
    for process in family:
        for listener in processes.listeners(process.pid):
            if port is None or listener.port == port:
                return process, listener.url, listener.port
    return None


async def _check_place(
    record: Record, started: Started, launcher: Launcher, client: OpenCodeClient, process: Process,
    seconds: float,
) -> None:
    """It must run and serve where it was told to.

    The first answer about a directory may take long: with plugins, OpenCode waits for an npm install.
    """
    try:
        place = await client.path(timeout=PLACE_FACTOR * seconds)
    except (errors.OpenCodeError, Unsure) as error:
        if "seconds" in error.details:
            raise errors.LaunchTimeout(
                "OpenCode started, but did not answer about its directory in time; it was stopped.",
                hint="A plugin of OpenCode may hang, or npm may have no network.",
                details=await _details(record, started, launcher, error)) from error
        if "status" not in error.details:
            raise
        # It runs, but nothing can be done with it: most often its configuration is invalid.
        raise errors.LaunchFailed(
            "OpenCode started, but answers with errors; it was stopped.",
            hint="Its own words are in the details; most often a configuration file of OpenCode is invalid.",
            details={**await _details(record, started, launcher, error), "text": error.details.get("text")},
        ) from error
    serves = place.directory or place.worktree
    runs_in = await asyncio.to_thread(processes.directory, process.pid)
    for there in (serves, runs_in):
        if there is not None and not await same_place(there, record.cwd):
            raise errors.LaunchFailed(
                "OpenCode came up in another directory than it was launched in; it was stopped.",
                details={"directory": record.cwd, "came_up_in": there})


async def _ended(record: Record, started: Started, launcher: Launcher) -> errors.OcmanError:
    code = await launcher.exit_code(started)
    details = await _details(record, started, launcher, None)
    last = details["output"].splitlines()[-1].strip() if details["output"] else ""
    how = "" if code is None else f" with exit code {code}"
    return errors.LaunchFailed(
        f"OpenCode ended while it was starting{how}" + (f": {last[:300]}" if last else "."),
        details={**details, "exit_code": code})


async def _details(
    record: Record, started: Started, launcher: Launcher, doubt: errors.OcmanError | None
) -> dict[str, Any]:
    output = await launcher.output(started, record.log_path)
    if record.password:
        output = output.replace(record.password, "***")
    details: dict[str, Any] = {"output": output, "log": record.log_path, "directory": record.cwd}
    if doubt is not None:
        details["reason"] = doubt.message
    return details
