"""A repository with a pretended OpenCode, in which the process side of the domain is put to the test."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from ocman_jupyter.opencode import processes
from ocman_jupyter.opencode.instances import Instances
from ocman_jupyter.opencode.target import Target
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store

PRETENDER = Path(__file__).with_name("pretender.py")


class World:
    """One repository, one data directory, one pretended OpenCode on PATH."""

    def __init__(self, tmp_path: Path, runtime_dir: Path, name: str = "project") -> None:
        self.tmp_path = tmp_path.resolve()
        self.root = self.tmp_path / "code" / name
        (self.root / ".git").mkdir(parents=True)
        self.folder = self.tmp_path / "fake"
        self.folder.mkdir(exist_ok=True)
        self.bin = self.tmp_path / "bin"
        self.bin.mkdir(exist_ok=True)
        self.program = self.bin / "opencode"
        # Without `site`, Python starts in a third of the time.
        self.program.write_text(f"#!{sys.executable} -IS\n{PRETENDER.read_text()}")
        self.program.chmod(0o755)
        self.environ = {**os.environ, "FAKE_OPENCODE": str(self.folder)}
        self.settings = OcmanSettings(
            data_dir=str(self.tmp_path / "state"), runtime_dir=str(runtime_dir / "ocman"),
            opencode_command=str(self.program), launcher="process", launch_timeout=10.0, probe_timeout=0.5,
            request_timeout=2.0)
        self.store = Store(self.tmp_path / "state" / "store.sqlite")
        self.children: list[subprocess.Popen[bytes]] = []

    def target(self, root: Path | None = None) -> Target:
        root = root or self.root
        worktrees = root.parent / ".worktrees" / root.name

        def belongs(directory: str) -> bool:
            place = Path(os.path.realpath(directory))
            return any(place == top or top in place.parents for top in (root, worktrees))

        return Target(str(root / ".git"), str(root), str(root), str(worktrees), belongs)

    def behave(self, **what: Any) -> None:
        """Tell the program what to do from now on."""
        new = self.folder / "behaviour.new"
        new.write_text(json.dumps(what))
        new.replace(self.folder / "behaviour")

    def starts(self) -> list[dict[str, Any]]:
        """All starts so far: pid, argv, cwd, environ."""
        with contextlib.suppress(FileNotFoundError):
            return [json.loads(line) for line in (self.folder / "starts").read_text().splitlines()]
        return []

    def running(self) -> list[int]:
        """Pids of the pretended OpenCodes that live."""
        pids = [one["pid"] for one in self.starts()]
        return [pid for pid in pids if processes.mark(pid) and self._is_it(pid)]

    def _is_it(self, pid: int) -> bool:
        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid).environ().get("FAKE_OPENCODE") == str(self.folder)
        return False

    def runs(self, *argv: str, cwd: Path | None = None, **environ: str) -> Path:
        """A user runs a program by hand; gives where its output goes."""
        log = self.tmp_path / f"user-{len(self.children)}.log"
        with open(log, "wb") as out:
            self.children.append(subprocess.Popen(
                argv, cwd=cwd or self.root, env={**self.environ, **environ}, stdout=out, stderr=out,
                stdin=subprocess.DEVNULL))
        return log

    def user_starts(self, cwd: Path | None = None, **environ: str) -> int:
        """A user starts an OpenCode by hand; gives its pid once it listens."""
        log = self.runs(str(self.program), "serve", cwd=cwd, **environ)
        wait_for(lambda: "listening" in log.read_text())
        return self.children[-1].pid

    @asynccontextmanager
    async def instances(self) -> AsyncIterator[Instances]:
        made = Instances(self.settings, self.store, self.environ)
        try:
            yield made
        finally:
            await made.close()

    def clean_up(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()
        self.tmux("kill-server")
        for pid in self.running():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(os.getpgid(pid), signal.SIGKILL)
        self.store.close()

    def tmux(self, *arguments: str) -> str:
        """Run tmux on ocman's socket; empty when it refuses."""
        socket = os.path.join(self.settings.runtime_dir, "tmux.sock")
        done = subprocess.run(["tmux", "-S", socket, *arguments], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""


def wait_for(condition: Any, seconds: float = 10.0) -> Any:
    """Poll until ``condition()`` is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
    return value


@pytest.fixture
def world(tmp_path: Path, runtime_dir: Path) -> Iterator[World]:
    made = World(tmp_path, runtime_dir)
    yield made
    made.clean_up()
