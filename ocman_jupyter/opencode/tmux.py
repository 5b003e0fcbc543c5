"""ocman's own tmux server: its own socket, no user configuration, sessions found and ended by id."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

MAX_SOCKET_PATH = 103
"""Bytes that a socket path may have (104 with its end on macOS, 108 on Linux)."""
DEADLINE = 10.0
"""Seconds that one tmux command may take."""

_FORMAT = "#{session_id}\t#{pane_id}\t#{pane_pid}\t#{pane_dead}\t#{pane_dead_status}\t#{session_name}"


class TmuxFailed(Exception):
    """tmux refused; the text is its own."""


class Pane(NamedTuple):
    """The one pane of a session of ours."""

    session_id: str
    pane_id: str
    pid: int
    dead: bool
    exit_code: int | None
    session: str


class Tmux:
    """A tmux server on a socket of its own.  The user's server is never spoken to.

    Not libtmux: that one looks for `tmux` on PATH alone, has no deadline and takes several processes.
    """

    def __init__(self, command: str, socket: str) -> None:
        self.command = command
        self.socket = socket

    async def start(self, name: str, argv: Sequence[str]) -> Pane:
        """Run ``argv`` (no shell) in a new detached session, whose pane stays when it ends: see `let_go`.

        It starts in ``/``: tmux takes another directory without a word when the one it was told is missing.
        """
        text = await self._run(
            # In one message: the option must hold before the command can end.
            "start-server", ";", "set-option", "-g", "-w", "remain-on-exit", "on", ";",
            "new-session", "-d", "-s", name, "-x", "200", "-y", "50", "-c", "/", "-P", "-F", _FORMAT, "--",
            *argv)
        return _pane(text.splitlines()[-1])

    async def let_go(self, pane: Pane) -> None:
        """From now on the session ends with its command."""
        await self._run("set-option", "-w", "-t", pane.pane_id, "remain-on-exit", "off")

    async def panes(self) -> list[Pane]:
        """Every pane; no server is an empty list."""
        if not await asyncio.to_thread(os.path.exists, self.socket):
            return []
        try:
            text = await self._run("list-panes", "-a", "-F", _FORMAT)
        except TmuxFailed as error:
            if any(words in str(error) for words in ("no server running", "error connecting", "no current")):
                return []
            raise
        return [_pane(line) for line in text.splitlines() if line.count("\t") >= 5]

    async def find(self, name: str) -> list[Pane]:
        """The panes of the session that is called exactly so."""
        return [pane for pane in await self.panes() if pane.session == name]

    async def reap(self) -> None:
        """Have the server look at its children: it misses the end of one that dies at once."""
        await self._run("run-shell", "true")

    async def end(self, session_id: str) -> None:
        """End a session (SIGHUP to what runs there); one that is gone is fine."""
        try:
            await self._run("kill-session", "-t", session_id)
        except TmuxFailed:
            if any(pane.session_id == session_id for pane in await self.panes()):
                raise

    async def screen(self, pane_id: str) -> str:
        """What the pane shows."""
        return await self._run("capture-pane", "-p", "-J", "-t", pane_id)

    async def _run(self, *arguments: str) -> str:
        # A word that ends with a semicolon would end the command.
        arguments = tuple(
            word[:-1] + "\\;" if len(word) > 1 and word.endswith(";") else word for word in arguments)
        argv = [self.command, "-u", "-f", "/dev/null", "-S", self.socket, *arguments]
        try:
            done = await asyncio.to_thread(
                subprocess.run, argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE,
                env=_environment(), cwd="/", check=False)
        except subprocess.TimeoutExpired:
            raise TmuxFailed(f"tmux did not answer within {DEADLINE:.0f} s.") from None
        except OSError as error:
            raise TmuxFailed(str(error)) from None
        if done.returncode:
            text = os.fsdecode(done.stderr or done.stdout).strip()
            raise TmuxFailed(text or f"tmux exited {done.returncode}")
        return os.fsdecode(done.stdout)


def _environment() -> dict[str, str]:
    """The server keeps its first client's environment: give it nothing that is worth to be kept."""
    harmless = ("HOME", "PATH", "LANG", "SHELL", "USER", "LOGNAME", "TMPDIR")
    kept = {name: value for name, value in os.environ.items() if name in harmless or name.startswith("LC_")}
    return {"TERM": "xterm-256color", **kept}


def _pane(line: str) -> Pane:
    session_id, pane_id, pid, dead, status, session = line.split("\t", 5)
    exit_code = int(status) if status.isdigit() else None
    return Pane(session_id, pane_id, int(pid or 0), dead == "1", exit_code, session)
