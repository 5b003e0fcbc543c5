"""Starts OpenCode in tmux or as a plain process; environment and secrets travel in a 0600 file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..settings import OcmanSettings
from . import processes
from .ending import end
from .environment import LAUNCH_ID
from .processes import Process
from .tmux import MAX_SOCKET_PATH, Tmux, TmuxFailed

TAIL = 8000
"""Bytes of output that are kept for an error."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELL_OWNS = frozenset({"UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"})
"""Read-only in some shells, which end when they are set."""


class CannotStart(Exception):
    """The launcher itself failed; nothing of OpenCode runs."""


@dataclass(frozen=True)
class Launch:
    """What is to be started."""

    launch_id: str
    session: str
    """Name of its tmux session: safe characters only."""
    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    log_path: str
    screen: bool
    """It draws on a terminal, so its output is no log."""


@dataclass(frozen=True)
class Started:
    process: Process
    tmux_session: str | None
    pane_id: str | None = None


class LaunchFiles:
    """The files of one launch in the runtime directory.  They tell, after a crash, how far it came."""

    def __init__(self, runtime_dir: Path, launch_id: str) -> None:
        self.script = runtime_dir / f"{launch_id}.sh"
        self.taken = runtime_dir / f"{launch_id}.taken"
        self.pid_file = runtime_dir / f"{launch_id}.pid"

    def write(self, launch: Launch, to_log: bool) -> None:
        """Write the script.  It removes itself before anything else, and leaves its pid."""
        def quote(text: str) -> bytes:
            return os.fsencode(shlex.quote(text))

        script, taken, pid_file = (quote(str(path)) for path in (self.script, self.taken, self.pid_file))
        lines = [b"#!/bin/sh"]
        if "PATH" in launch.environ:
            lines.append(b"export PATH=" + quote(launch.environ["PATH"]))
        lines += [
            # Whoever moves or deletes it first decides whether this launch happens.
            b"mv -- " + script + b" " + taken + b" || exit 75",
            b"rm -f -- " + taken,
            b"echo $$ > " + pid_file + b".new && mv -- " + pid_file + b".new " + pid_file + b" || exit 73",
        ]
        if to_log:
            lines.append(b"exec >> " + quote(launch.log_path) + b" 2>&1")
        lines.append(b"cd -- " + quote(launch.cwd) + b" || exit 72")
        lines += [
            b"export " + name.encode() + b"=" + quote(value)
            for name, value in launch.environ.items() if _NAME.fullmatch(name) and name not in _SHELL_OWNS
        ]
        lines.append(b"exec " + b" ".join(map(quote, launch.argv)))
        handle = os.open(self.script, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(handle, "wb") as file:
            file.write(b"\n".join(lines) + b"\n")

    def revoke(self) -> bool:
        """Take the script away; True: it had not been read, so this launch never starts."""
        try:
            self.script.unlink()
        except FileNotFoundError:
            return False
        return True

    def pid(self) -> int | None:
        """What the launched process said of itself."""
        try:
            return int(self.pid_file.read_text())
        except (OSError, ValueError):
            return None

    def remove(self) -> None:
        new = self.pid_file.with_name(self.pid_file.name + ".new")
        for path in (self.script, self.taken, self.pid_file, new):
            path.unlink(missing_ok=True)


EXIT_TRIES = 20
EXIT_PAUSE = 0.05
"""Seconds between looks at how an ended process ended."""


class Launcher(Protocol):
    """Where a launched OpenCode lives."""

    kind: Literal["tmux", "process"]

    async def launch(self, launch: Launch, files: LaunchFiles) -> Started:
        """Start it.  Raises :class:`CannotStart`."""

    async def settle(self, started: Started) -> None:
        """It answers: from now on nothing of it is kept when it ends."""

    async def exit_code(self, started: Started) -> int | None:
        """How it ended, where that is known."""

    async def output(self, started: Started, log_path: str) -> str:
        """Its last output."""

    async def clear(self, session: str | None) -> list[Process]:
        """End the container; the processes that were in it.  Raises :class:`CannotStart`."""


class TmuxLauncher:
    kind: Literal["tmux", "process"] = "tmux"

    def __init__(self, tmux: Tmux) -> None:
        self.tmux = tmux

    async def launch(self, launch: Launch, files: LaunchFiles) -> Started:
        # What is left in a session of that name serves nobody: it was looked for before.
        await asyncio.to_thread(end, await self.clear(launch.session))
        try:
            await asyncio.to_thread(files.write, launch, not launch.screen)
            pane = await self.tmux.start(
                launch.session,
                ["env", "-i", f"{LAUNCH_ID}={launch.launch_id}", "/bin/sh", str(files.script)])
        except (TmuxFailed, OSError, ValueError, IndexError) as error:
            raise CannotStart(str(error)) from error
        process = processes.current(pane.pid)
        # It may be over already: then any word will do that no process has.
        return Started(process or Process(pane.pid, "ended"), launch.session, pane.pane_id)

    async def settle(self, started: Started) -> None:
        with contextlib.suppress(TmuxFailed):
            for pane in await self.tmux.find(started.tmux_session or ""):
                await self.tmux.let_go(pane)

    async def exit_code(self, started: Started) -> int | None:
        for _ in range(EXIT_TRIES):  # tmux hears of the end a moment later
            with contextlib.suppress(TmuxFailed):
                for pane in await self.tmux.find(started.tmux_session or ""):
                    if pane.dead and pane.exit_code is not None:
                        return pane.exit_code
                    if pane.dead:
                        await self.tmux.reap()
            await asyncio.sleep(EXIT_PAUSE)
        return None

    async def output(self, started: Started, log_path: str) -> str:
        text = await asyncio.to_thread(tail, log_path)
        if not text and started.pane_id:
            with contextlib.suppress(TmuxFailed):
                text = (await self.tmux.screen(started.pane_id)).strip()[-TAIL:]
        return text

    async def clear(self, session: str | None) -> list[Process]:
        if not session:
            return []
        try:
            panes = await self.tmux.find(session)
            inside = [process for process in (processes.current(pane.pid) for pane in panes) if process]
            for session_id in {pane.session_id for pane in panes}:
                await self.tmux.end(session_id)
        except TmuxFailed as error:
            raise CannotStart(str(error)) from error
        return inside


class ProcessLauncher:
    kind: Literal["tmux", "process"] = "process"

    def __init__(self) -> None:
        self._children: dict[Process, subprocess.Popen[bytes]] = {}

    async def launch(self, launch: Launch, files: LaunchFiles) -> Started:
        def start() -> Started:
            files.write(launch, True)
            child = subprocess.Popen(
                ["/bin/sh", str(files.script)], env={LAUNCH_ID: launch.launch_id}, cwd="/",
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            process = processes.current(child.pid) or Process(child.pid, "ended")
            self._children[process] = child
            # Nobody else can take note of its end, and an ended child whom nobody asks about stays a zombie.
            threading.Thread(target=child.wait, name=f"ocman-wait-{child.pid}", daemon=True).start()
            return Started(process, None)

        try:
            return await asyncio.to_thread(start)
        except OSError as error:
            raise CannotStart(str(error)) from error

    async def settle(self, started: Started) -> None:
        self._children.pop(started.process, None)

    async def exit_code(self, started: Started) -> int | None:
        child = self._children.get(started.process)
        if child is None:
            return None
        for _ in range(EXIT_TRIES):
            if child.returncode is not None:
                break
            await asyncio.sleep(EXIT_PAUSE)
        return child.returncode

    async def output(self, started: Started, log_path: str) -> str:
        return await asyncio.to_thread(tail, log_path)

    async def clear(self, session: str | None) -> list[Process]:
        return []


def choose(settings: OcmanSettings) -> tuple[Launcher, str | None]:
    """The launcher of these settings, and why tmux is not used although it was to be preferred."""
    if settings.launcher == "process":
        return ProcessLauncher(), None
    tmux, reason = tmux_server(settings)
    if tmux is None and settings.launcher == "tmux":
        raise CannotStart(reason)
    return (TmuxLauncher(tmux), None) if tmux else (ProcessLauncher(), reason)


def tmux_server(settings: OcmanSettings) -> tuple[Tmux | None, str | None]:
    """ocman's own tmux server, or why there can be none."""
    command = shutil.which(settings.tmux_command)
    if command is None:
        return None, f"{settings.tmux_command} is not installed"
    socket = os.path.join(settings.runtime_dir, "tmux.sock")
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH:
        return None, f"the socket's path is too long: set OcmanSettings.runtime_dir to a short one ({socket})"
    return Tmux(command, socket), None


def find_opencode(settings: OcmanSettings) -> str | None:
    """The OpenCode to run: as configured, else on PATH, else ocman's own; ``None`` when there is none."""
    if settings.opencode_command:
        return shutil.which(os.path.expanduser(settings.opencode_command))
    own = [settings.private_prefix / "bin" / "opencode",
           settings.private_prefix / "node_modules" / ".bin" / "opencode"]
    return shutil.which("opencode") or next((str(path) for path in own if os.access(path, os.X_OK)), None)


def tail(path: str, size: int = TAIL) -> str:
    """The end of a log, without the codes that colour it."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return re.sub(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)", "", text).strip()


def fresh_log(path: str) -> None:
    """An empty log that this user alone can read; the one before is kept beside it."""
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, path + ".old")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
