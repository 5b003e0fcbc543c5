"""What this machine can do: the tools that are there, what is missing and how to get it."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import socket
from collections.abc import Awaitable, Callable

from ..host import LOCAL, Capabilities, Check, MissingTool, Tool
from .parts import Parts

_NUMBER = re.compile(r"\d+(?:\.\d+)+[a-z]?")
_VERSION_TIMEOUT = 10.0  # seconds; a tool that hangs must not hang the answer

HINTS = {
    "git": "Install git: `apt-get install git`, `dnf install git` or `brew install git`.",
    "opencode": "Run `ocman-jupyter setup`, or `npm install -g opencode-ai`.",
    "tmux": "Install tmux: `apt-get install tmux`, `dnf install tmux` or `brew install tmux`.",
    "rg": "Install ripgrep: `apt-get install ripgrep`, `dnf install ripgrep` or `brew install ripgrep`.",
}


async def tool_version(path: str, flag: str) -> str | None:
    """The version that a tool prints, or ``None`` when it does not answer as a tool would."""
    try:
        process = await asyncio.create_subprocess_exec(
            path, flag, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _VERSION_TIMEOUT)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return None
    number = _NUMBER.search(out.decode(errors="replace"))
    return number.group(0) if process.returncode == 0 and number else None


class Machine:
    """Capabilities and a health check of this machine."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._versions: dict[tuple[str, float], str | None] = {}

    async def _tool(self, path: str | None, flag: str) -> Tool | None:
        if path is None:
            return None
        try:
            key = (path, os.stat(path).st_mtime)
        except OSError:
            return None
        if key not in self._versions:
            self._versions[key] = await tool_version(path, flag)
        version = self._versions[key]
        return None if version is None else Tool(path=path, version=version)

    async def capabilities(self) -> Capabilities:
        from ... import __version__

        settings = self._parts.settings
        git, tmux, opencode = await asyncio.gather(
            self._tool(shutil.which(settings.git_command), "--version"),
            self._tool(shutil.which(settings.tmux_command), "-V"),
            self._tool(self._parts.opencode_path(), "--version"),
        )
        missing = [
            MissingTool(name=name, required=required, reason=reason, hint=HINTS[name])
            for name, tool, required, reason in (
                ("git", git, True, "Worktrees are made with git."),
                ("opencode", opencode, True, "OpenCode is the agent."),
                ("tmux", tmux, False, "Without tmux OpenCode runs as a plain background process."),
            )
            if tool is None
        ]
        launcher = "tmux" if tmux is not None and settings.launcher != "process" else "process"
        return Capabilities(
            version=__version__,
            host={"id": LOCAL, "name": socket.gethostname()},
            worktree_sessions=git is not None and opencode is not None,
            missing=missing,
            git=git,
            tmux=tmux,
            opencode=opencode,
            launcher=launcher,
            sandbox={"available": [], "active": "none"},
            hosts=[{"id": LOCAL, "name": socket.gethostname(), "state": "connected"}],
        )

    async def doctor(self) -> list[Check]:
        found = await self.capabilities()
        checks = []
        for name, tool in (("git", found.git), ("opencode", found.opencode), ("tmux", found.tmux)):
            lacking = next((m for m in found.missing if m.name == name), None)
            if tool is not None:
                checks.append(Check(name=name, status="ok", message=f"{name} {tool.version} at {tool.path}"))
            elif lacking is not None:
                status = "error" if lacking.required else "warning"
                checks.append(
                    Check(name=name, status=status, message=f"not found. {lacking.reason}", hint=lacking.hint)
                )
        checks += [
            self._check_ripgrep(),
            await self._checked("state", self._check_store),
            await self._checked("runtime", self._check_runtime),
            await self._checked("instances", self._check_instances),
            self._check_platform(),
        ]
        return checks

    @staticmethod
    async def _checked(name: str, check: Callable[[], Awaitable[Check]]) -> Check:
        try:
            return await check()
        except Exception as error:  # a broken part is what a doctor is there to tell
            return Check(name=name, status="error", message=f"{type(error).__name__}: {error}")

    @staticmethod
    def _check_ripgrep() -> Check:
        path = shutil.which("rg")
        if path is None:
            return Check(
                name="rg", status="warning", hint=HINTS["rg"],
                message="not found. Without a network the agent's search tools fail.",
            )
        return Check(name="rg", status="ok", message=f"ripgrep at {path}")

    async def _check_store(self) -> Check:
        store = self._parts.store
        await store.run(lambda db: db.execute("SELECT count(*) FROM instances").fetchone())
        mode = os.stat(store.path).st_mode & 0o777
        if mode != 0o600:
            return Check(
                name="state", status="warning", message=f"{store.path} has mode {mode:o}",
                hint=f"chmod 600 {store.path}",
            )
        return Check(name="state", status="ok", message=str(store.path))

    async def _check_runtime(self) -> Check:
        settings = self._parts.settings
        directory = settings.private_dir(settings.runtime_dir)
        return Check(name="runtime", status="ok", message=str(directory))

    async def _check_instances(self) -> Check:
        known = await self._parts.instances.known()
        count = len(known)
        names = ", ".join(f"{i.root} (port {i.port})" for i in known)
        return Check(name="instances", status="ok", message=f"{count} running" + (f": {names}" if names else ""))

    @staticmethod
    def _check_platform() -> Check:
        system = platform.system()
        if system in ("Linux", "Darwin"):
            return Check(name="platform", status="ok", message=f"{system}, Python {platform.python_version()}")
        return Check(
            name="platform", status="error", message=f"{system} is not supported.",
            hint="Use Linux or macOS (on Windows: WSL).",
        )
