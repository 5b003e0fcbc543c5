"""One process: what N worktree sessions cost through us, against one OpenCode per worktree."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil

from ocman_jupyter.demo.ending import opencode_processes

from . import repositories
from .measure import Row
from .scene import Ends, OpenCode, Scene, told, wait_for

MB = 1e6
LEAST_FACTOR = 4


def one_process(scene: Scene, repeat: int, sessions: int = 10, screens: bool = True) -> list[Row]:
    """``sessions`` worktree sessions, each with one answered prompt (nothing is timed: no repetitions)."""
    root = scene.repository("tiny")
    server = scene.server()
    opencode = scene.instance(server, root)
    ends = Ends(opencode)
    scene.say(f"{sessions} worktree sessions through us …")
    first = 0
    with server.client() as rest:
        for number in range(sessions):
            body = {"directory": str(root), "branch": f"idea-{number}", "prompt": f"SAY hello {number}"}
            made = told(rest.post("api/ocman/worktrees", json=body))
            ends.wait("idle", str(made["session_id"]))
            if number == 0:
                scene.settle(opencode.pid, server.process.pid)
                first = opencode.rss()
    scene.settle(opencode.pid, server.process.pid)
    ours, processes = opencode.rss(), len(opencode_processes(scene.place))
    ends.close()
    server.stop()
    each = (ours - first) / max(1, sessions - 1) / MB
    serves = _serves(scene, root, sessions)
    case = "one process"
    rows = [
        Row(
            case,
            f"OpenCode processes for {sessions} worktree sessions",
            processes,
            "",
            target="= 1",
            passed=processes == 1,
        ),
        Row(
            case,
            f"memory of {sessions} worktree sessions",
            ours / MB,
            "MB",
            "one `opencode serve` per worktree",
            serves / MB,
            f"≤ 1/{LEAST_FACTOR} ×",
            ours * LEAST_FACTOR <= serves,
        ),
        Row(case, "memory of one more session", each, "MB"),
    ]
    if screens:
        total = _screens(scene, root, sessions)
        rows.append(
            Row(
                case,
                f"memory of {sessions} worktree sessions",
                ours / MB,
                "MB",
                "one `opencode` screen per worktree",
                total / MB,
            )
        )
    return rows


def _worktree(root: Path, name: str) -> Path:
    path = root.parent / "by-hand" / name
    repositories.git(root, "worktree", "add", "-q", "--no-track", "-b", name, str(path))
    return path


def _serves(scene: Scene, root: Path, count: int) -> int:
    """Bytes of one server per worktree, each with one answered prompt, all at once."""
    scene.say(f"{count} times `opencode serve` …")
    running: list[OpenCode] = []
    try:
        for number in range(count):
            path = _worktree(root, f"serve-{number}")
            opencode = scene.launch(path)
            running.append(opencode)
            _answered(opencode, path)
        return sum(one.rss() for one in running)
    finally:
        for one in running:
            one.end()


def _answered(opencode: OpenCode, path: Path) -> None:
    ends = Ends(opencode)
    session = opencode.session(path)
    opencode.prompt(session, "SAY hello")
    ends.wait("idle", session)
    ends.close()


def _screens(scene: Scene, root: Path, count: int) -> int:
    """Bytes of one terminal screen per worktree, each with one answered prompt, all at once."""
    scene.say(f"{count} times the `opencode` screen …")
    tmux = shutil.which("tmux")
    if tmux is None:
        raise RuntimeError("tmux is needed for the screens")
    socket = str(scene.folder / "s")
    own = {key: str(scene.folder / "by-hand-state" / Path(path).name) for key, path in scene.place.xdg.items()}
    env = {**scene.env, **own, "TERM": "xterm-256color"}
    command = shutil.which("opencode", path=scene.env["PATH"]) or "opencode"
    pids: list[int] = []
    try:
        for number in range(count):
            path = _worktree(root, f"screen-{number}")
            told = subprocess.run(
                [
                    tmux,
                    "-S",
                    socket,
                    "-f",
                    "/dev/null",
                    "new-session",
                    "-d",
                    "-x",
                    "120",
                    "-y",
                    "40",
                    "-c",
                    str(path),
                    "-P",
                    "-F",
                    "#{pane_pid}",
                    command,
                    "--port",
                    "0",
                ],
                env=env,
                check=True,
                capture_output=True,
                text=True,
            )
            pids.append(int(told.stdout))
            process = psutil.Process(pids[-1])
            port = wait_for(lambda process=process: _port(process), "the screen's port")
            opencode = OpenCode(f"http://127.0.0.1:{port}", pids[-1])
            wait_for(lambda opencode=opencode: _healthy(opencode), "the screen's health", pause=0.2)
            _answered(opencode, path)
            opencode.client.close()
        return sum(_tree_rss(pid) for pid in pids)
    finally:
        subprocess.run([tmux, "-S", socket, "kill-server"], env=env, check=False, capture_output=True)
        _gone(pids)


def _port(process: psutil.Process) -> int | None:
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            connections = getattr(one, "net_connections", None) or one.connections
            for connection in connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    return int(connection.laddr.port)
    return None


def _healthy(opencode: OpenCode) -> bool:
    with contextlib.suppress(Exception):
        import httpx

        return httpx.get(f"{opencode.url}/global/health", timeout=1, trust_env=False).status_code == 200
    return False


def _tree_rss(pid: int) -> int:
    process = psutil.Process(pid)
    total = 0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += one.memory_info().rss
    return total


def _gone(pids: list[int]) -> None:
    """A screen can outlive its terminal: end what is left of those that were started here."""
    for pid in pids:
        with contextlib.suppress(psutil.Error, TimeoutError):
            process = psutil.Process(pid)
            deadline = time.monotonic() + 3
            while process.is_running() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
