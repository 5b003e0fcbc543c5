"""Which OpenCode is installed, and what differs between versions before one runs."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Mapping

DEADLINE = 15.0
"""Seconds that `opencode --version` may take."""

_known: dict[tuple[str, int, int], str] = {}


async def opencode_version(command: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The version that a command says of itself; remembered as long as the file stays the same."""
    return await asyncio.to_thread(_ask, command, environ)


def _ask(command: str, environ: Mapping[str, str] | None) -> str | None:
    try:
        info = os.stat(command)
        key = (os.path.realpath(command), info.st_mtime_ns, info.st_size)
        if key not in _known:
            done = subprocess.run(
                [command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE,
                env=environ, cwd="/", check=False)
            match = re.search(r"\d+\.\d+\.\d+\S*", os.fsdecode(done.stdout))
            if done.returncode or match is None:
                return None
            _known[key] = match[0]
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _known[key]


def screen_takes_password(version: str) -> bool:
    """Whether the screen of this version can speak with its own server when that has a password.

    1.17's cannot: it is refused by it (401) and ends.
    """
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    return numbers >= [1, 18]
