"""Launches a repository's OpenCode and ends it; each step is on record, for the next program to finish."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import re
import secrets
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import errors
from ..settings import OcmanSettings
from ..store import private_folder, usable
from . import environment, permissions, processes
from .client import OpenCodeClient, closed_on_failure
from .ending import end
from .flights import Say
from .launcher import (
    CannotStart,
    Launch,
    Launcher,
    LaunchFiles,
    ProcessLauncher,
    Started,
    TmuxLauncher,
    choose,
    find_opencode,
    fresh_log,
    tmux_server,
)
from .locking import digest
from .permissions import Warnings
from .processes import Process
from .registry import Record, Registry
from .shells import forgetful_shell
from .target import Target
from .versions import opencode_version, screen_takes_password
from .waiting import Ready, wait_until_ready

log = logging.getLogger(__name__)

FINISH_AT_LEAST = 10.0
"""Seconds that a launch which somebody else began gets, however old it is."""
PID_WITHIN = 2.0
"""Seconds within which a launch script that was read leaves its pid."""
USERNAME = "opencode"

Launched = tuple[Record, OpenCodeClient, Warnings]
"""A running one, its client, and what the user should know about it."""


class Launches:
    """Call it while the repository's lock is held."""

    def __init__(
        self, settings: OcmanSettings, registry: Registry, environ: Mapping[str, str] | None = None
    ) -> None:
        self.settings = settings
        self.registry = registry
        self._environ = environ

    def environ(self) -> Mapping[str, str]:
        """The user's environment."""
        return os.environ if self._environ is None else self._environ

    def client(self, record: Record, url: str | None = None) -> OpenCodeClient:
        return OpenCodeClient(
            url or record.url, record.password, record.username, self.settings.request_timeout)

    async def launch(self, target: Target, say: Say) -> Launched:
        """Launch one and wait until it answers.

        Raises ``OpenCodeMissing``, ``LaunchFailed`` or ``LaunchTimeout``; what was launched is ended and
        forgotten then.  When the wait is cancelled everything stays as it is: the record says ``launching``.
        """
        command = await asyncio.to_thread(find_opencode, self.settings)
        if command is None:
            raise errors.OpenCodeMissing(details={"command": self.settings.opencode_command or "opencode"})
        say("Starting OpenCode")
        form, warnings = await self._form(command)
        argv = (command, *form)
        try:
            launcher, _ = choose(self.settings)
            if launcher.kind == "tmux" and self.settings.launcher == "auto":
                try:
                    return await self._launch_in(launcher, target, say, argv, warnings)
                except CannotStart as error:
                    log.warning("tmux could not start OpenCode; it runs as a plain process: %s", error)
                    launcher = ProcessLauncher()
            return await self._launch_in(launcher, target, say, argv, warnings)
        except CannotStart as error:
            raise errors.LaunchFailed(
                f"OpenCode could not be started: {error}",
                hint="See the settings OcmanSettings.launcher and OcmanSettings.runtime_dir.") from error

    async def finish(self, target: Target, record: Record, say: Say) -> Launched | None:
        """Go on with a launch whose program ended in the middle; ``None``: it was cleaned up."""
        launched = await self.launched(record)
        if launched is None:
            await self.end(record)
            return None
        record = dataclasses.replace(record, launch_pid=launched.pid, launch_mark=launched.mark)
        seconds = max(FINISH_AT_LEAST, record.launched_at + self.settings.launch_timeout - time.time())
        started = Started(launched, record.tmux_session)
        try:
            seconds = min(seconds, self.settings.launch_timeout)
            return await self._wait(target, record, started, self.launcher(record), say, seconds, [])
        except (errors.LaunchFailed, errors.LaunchTimeout) as error:
            if error.details.get("stopped") is False:
                raise
            return None

    async def launched(self, record: Record) -> Process | None:
        """The process of a launch that was cut short, if it can be proved to be that one."""
        if record.launched is not None:
            return record.launched if record.launched.runs else None
        files = await self._files(record.launch_id)
        if await asyncio.to_thread(files.revoke):
            return None
        deadline = time.monotonic() + PID_WITHIN
        pid = await asyncio.to_thread(files.pid)
        while pid is None and files.taken.exists() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            pid = await asyncio.to_thread(files.pid)
        process = processes.current(pid) if pid else None
        if process is None:
            return None
        stems_from = await asyncio.to_thread(processes.variable, process.pid, environment.LAUNCH_ID)
        return process if stems_from == record.launch_id else None

    async def end(self, record: Record) -> None:
        """End one of ours, confirm it, and forget it.  Raises ``OpenCodeUnreachable`` when it lives on."""
        record = dataclasses.replace(record, state="stopping")
        await self.registry.put(record)
        launcher = self.launcher(record)
        roots = [one for one in (record.process, record.launched) if one is not None]
        gone = await asyncio.to_thread(end, roots, record.launch_id, record.port)
        # A session of ours that is still there holds nothing, or what the record did not get to know.
        try:
            inside = await launcher.clear(record.tmux_session)
            gone = await asyncio.to_thread(end, inside, record.launch_id, record.port) and gone
        except CannotStart as error:
            log.warning("tmux could not end the session %s: %s", record.tmux_session, error)
        if not gone:
            raise errors.OpenCodeUnreachable(
                "OpenCode did not end; no other one was started.",
                hint="Look at the processes in the details, and end them yourself.",
                details={"pids": [root.pid for root in roots if root.runs], "port": record.port})
        if record.launch_id:
            (await self._files(record.launch_id)).remove()
        await self.registry.delete(record.identity)

    def launcher(self, record: Record) -> Launcher:
        """What looks after a launch that somebody began."""
        if record.launcher == "tmux":
            tmux, _ = tmux_server(self.settings)
            if tmux is not None:
                return TmuxLauncher(tmux)
        return ProcessLauncher()

    async def is_seeded(self, client: OpenCodeClient, directory: str, worktrees_root: str) -> bool:
        """Whether agents of a running one may work below the root without an ask."""
        return await self._seeded(client, await self._config(client, directory), directory, worktrees_root)

    # --- pieces of a launch ------------------------------------------------------------------

    async def _launch_in(
        self, launcher: Launcher, target: Target, say: Say, argv: tuple[str, ...], warnings: Warnings
    ) -> Launched:
        launch_id, password = uuid.uuid4().hex[:16], secrets.token_urlsafe(32)
        environ, said = await asyncio.to_thread(self._launch_environment, target, launch_id, password)
        if launcher.kind == "tmux":
            environ["TERM"] = "tmux-256color"
        try:
            files, log_path = await self._files(launch_id), await asyncio.to_thread(self._fresh_log, target)
        except OSError as error:
            raise CannotStart(str(error)) from error
        launch = Launch(
            launch_id, session_name(target), argv, target.cwd, environ, log_path,
            screen="serve" not in argv[1:2])
        record = Record(
            identity=target.identity, state="launching", root=target.root, cwd=target.cwd, owner="ocman",
            username=USERNAME, password=password, launch_id=launch_id, launcher=launcher.kind,
            tmux_session=launch.session if launcher.kind == "tmux" else None, log_path=log_path,
            launched_at=time.time())
        await self.registry.put(record)
        try:
            started = await launcher.launch(launch, files)
        except CannotStart:
            launched = await self.launched(record)
            if launched is not None:
                record = dataclasses.replace(record, launch_pid=launched.pid, launch_mark=launched.mark)
            await self.end(record)
            raise
        record = dataclasses.replace(record, launch_pid=started.process.pid, launch_mark=started.process.mark)
        await self.registry.put(record)
        return await self._wait(
            target, record, started, launcher, say, self.settings.launch_timeout, [*warnings, *said])

    async def _wait(
        self, target: Target, record: Record, started: Started, launcher: Launcher, say: Say, seconds: float,
        warnings: Warnings,
    ) -> Launched:
        ticking = asyncio.get_running_loop().create_task(_tick(say))
        try:
            ready = await wait_until_ready(
                record, started, launcher, seconds=seconds, connect=lambda url: self.client(record, url))
        except errors.OcmanError as error:
            try:
                await self.end(record)
            except errors.OpenCodeUnreachable as alive:
                error.details.update(alive.details, stopped=False)
                error.hint = alive.hint
            raise
        finally:
            ticking.cancel()
        async with closed_on_failure(ready.client):
            await launcher.settle(started)
            return await self._settled(target, record, ready, warnings)

    async def _settled(self, target: Target, record: Record, ready: Ready, warnings: Warnings) -> Launched:
        config = await self._config(ready.client, record.cwd)
        seeded = await self._seeded(ready.client, config, record.cwd, target.worktrees_root)
        if not seeded and not permissions.unusable(target.worktrees_root):
            warnings = [*warnings, ("permission_not_seeded", "OpenCode's configuration does not let agents "
                                    f"work below {target.worktrees_root} without an ask.")]
        if config.get("shell"):
            warnings = [*warnings, ("password_not_hidden", f"OpenCode's configuration names a shell "
                                    f"({config['shell']}), in which agents can read its server's password.")]
        record = dataclasses.replace(
            record, state="running", url=ready.url, port=ready.port, pid=ready.process.pid,
            pid_mark=ready.process.mark, version=ready.version, seeded=seeded,
            started_at=await asyncio.to_thread(processes.started_at, ready.process.pid))
        await self.registry.put(record)
        (await self._files(record.launch_id)).remove()
        return record, ready.client, warnings

    async def _config(self, client: OpenCodeClient, directory: str) -> dict[str, Any]:
        try:
            return await client.config(directory)
        except errors.OcmanError as error:
            log.warning("OpenCode's configuration could not be read: %s", error)
            return {}

    async def _seeded(
        self, client: OpenCodeClient, config: dict[str, Any], directory: str, worktrees_root: str
    ) -> bool:
        if not permissions.is_seeded(config, worktrees_root) or not permissions.order_matters(config):
            return permissions.is_seeded(config, worktrees_root)
        try:
            return permissions.agents_allow(await client.agents(directory), worktrees_root)
        except errors.OcmanError as error:
            log.warning("OpenCode's agents could not be read: %s", error)
            return False

    async def _form(self, command: str) -> tuple[tuple[str, ...], Warnings]:
        """The words after `opencode`."""
        serve = ("serve", "--port", "0", "--hostname", "127.0.0.1")
        if self.settings.instance_command == "serve":
            return serve, []
        version = await opencode_version(command, self.environ())
        if version is not None and not screen_takes_password(version):
            return serve, [("no_screen", f"The screen of OpenCode {version} cannot work with a password, so "
                            "it was launched without one. `ocman-jupyter attach` opens a screen.")]
        return ("--port", "0"), []

    def _launch_environment(
        self, target: Target, launch_id: str, password: str
    ) -> tuple[dict[str, str], Warnings]:
        return environment.launch_environment(
            self.environ(), worktrees_root=target.worktrees_root, launch_id=launch_id, username=USERNAME,
            password=password, shell=forgetful_shell(self.environ(), Path(self.settings.data_dir) / "shells"),
            disable_project_config=self.settings.disable_project_config)

    async def _files(self, launch_id: str) -> LaunchFiles:
        directory = await asyncio.to_thread(private_folder, self.settings, self.settings.runtime_dir)
        return LaunchFiles(directory, launch_id)

    def _fresh_log(self, target: Target) -> str:
        directory = private_folder(self.settings, Path(self.settings.data_dir) / "logs")
        path = str(directory / f"{session_name(target)}.log")
        with usable(Path(path)):
            fresh_log(path)
        return path


async def _tick(say: Say) -> None:
    begun = time.monotonic()
    while True:
        await asyncio.sleep(1)
        say(f"Starting OpenCode ({time.monotonic() - begun:.0f} s)")


def session_name(target: Target) -> str:
    """The name of its tmux session: readable, and of no other repository."""
    name = os.path.basename(target.root.rstrip("/")).lower()
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:32].strip("-")
    return f"ocman-{slug or 'repository'}-{digest(target.identity)[:8]}"
