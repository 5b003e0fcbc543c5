"""The list of 50 worktrees and 1,000 sessions: against bare git and OpenCode, and a second time."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from . import repositories
from .measure import Row, at_most_times, interleaved, median
from .scene import OpenCode, Scene, now, told

WORKTREES = 50
SESSIONS = 1_000
QUICK_LIMIT = 1.5
FULL_LIMIT = 1.3
AGAIN_FACTOR = 5
AT_ONCE = 2
"""How many bare ``git status`` run at a time."""
SETTLED = 2.5
"""Seconds after which a change of a file is no longer younger than a time stamp can tell."""

_changes = itertools.count()


def make_worktrees(root: Path, count: int) -> list[Path]:
    """Linked worktrees of ``root``, made by hand."""
    paths = [root.parent / "by-hand" / f"w{number:02d}" for number in range(count)]
    for path in paths:
        repositories.git(root, "worktree", "add", "-q", "--no-track", "-b", path.name, str(path))
    return paths


def make_sessions(opencode: OpenCode, paths: Sequence[Path], count: int) -> None:
    """``count`` sessions, spread over ``paths``."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(opencode.session, itertools.islice(itertools.cycle(paths), count)))


def change(paths: Sequence[Path]) -> None:
    """Change one tracked file in each, and wait until the change has settled."""
    for path in paths:
        (path / "package00" / "part0" / "module0000.py").write_text(f"changed = {next(_changes)}\n")
    time.sleep(SETTLED)


def list_by_hand(root: Path, opencode: OpenCode) -> None:
    """One bare ``git worktree list`` and one bare ``GET /session``."""
    subprocess.run(["git", "-C", str(root), "worktree", "list", "--porcelain"], check=True, capture_output=True)
    scope = {"directory": str(root), "scope": "project", "limit": "100000"}
    told(opencode.client.get("/session", params=scope))


def status_by_hand(path: Path) -> None:
    argv = ["git", "-C", str(path), "--no-optional-locks", "status", "--porcelain=v2", "--branch"]
    subprocess.run(argv, check=True, capture_output=True)


def read_list(rest: httpx.Client, root: Path, changes: bool) -> float:
    """Milliseconds of our list."""
    began = now()
    wanted = {"directory": str(root), "changes": str(changes).lower()}
    answer = told(rest.get("api/ocman/worktrees", params=wanted))
    took = now() - began
    if len(answer["worktrees"]) <= WORKTREES:
        raise RuntimeError(f"only {len(answer['worktrees'])} worktrees are listed")
    return took


def listing(scene: Scene, repeat: int) -> list[Row]:
    """The quick list, the full one after a change in every worktree, and the full one again."""
    root = scene.repository("small-files")
    server = scene.server()
    opencode = scene.instance(server, root)
    scene.say(f"making {WORKTREES} worktrees and {SESSIONS} sessions …")
    paths = make_worktrees(root, WORKTREES)
    make_sessions(opencode, paths, SESSIONS)
    again: list[float] = []
    with server.client() as rest, ThreadPoolExecutor(AT_ONCE) as pool:

        def quick_bare(number: int) -> float:
            began = now()
            list_by_hand(root, opencode)
            return now() - began

        def full(number: int) -> float:
            change(paths)
            first = read_list(rest, root, changes=True)
            again.append(read_list(rest, root, changes=True))
            return first

        def full_bare(number: int) -> float:
            change(paths)
            began = now()
            list_by_hand(root, opencode)
            list(pool.map(status_by_hand, paths))
            return now() - began

        read_list(rest, root, changes=True)
        quick_bare(0)
        pids = (opencode.pid, server.process.pid)
        scene.settle(*pids)
        scene.say(f"{repeat} rounds …")
        quick_sides = {"ours": lambda number: read_list(rest, root, changes=False), "bare": quick_bare}
        quick = interleaved(repeat * 3, quick_sides)
        whole = interleaved(repeat, {"ours": full, "bare": full_bare}, lambda: scene.settle(*pids))
    case, what = "list", f"{WORKTREES} worktrees, {SESSIONS:,} sessions"
    first, second = median(whole["ours"]), median(again)
    return [
        at_most_times(
            case,
            f"{what}, changes=false",
            median(quick["ours"]),
            "ms",
            "`git worktree list` + `GET /session`",
            median(quick["bare"]),
            QUICK_LIMIT,
            repeat * 3,
        ),
        at_most_times(
            case,
            f"{what}, all of it",
            first,
            "ms",
            f"the same + `git status` of each, {AT_ONCE} at a time",
            median(whole["bare"]),
            FULL_LIMIT,
            repeat,
        ),
        Row(
            case,
            f"{what}, all of it again",
            second,
            "ms",
            "ours the first time",
            first,
            f"≤ 1/{AGAIN_FACTOR} ×",
            second * AGAIN_FACTOR <= first,
            repeat,
        ),
    ]


def against_jupyterlab_git(scene: Scene, repeat: int) -> list[Row]:
    """20 worktrees of 5,000 files: our list against the status endpoint of jupyterlab-git, asked for each."""
    from .scene import wait_for

    root = scene.repository("light-files")
    paths = make_worktrees(root, 20)
    scene.say("installing jupyterlab-git 0.55 into a virtual environment of its own …")
    venv = scene.folder / "venv"
    for argv in (
        ["python3", "-m", "venv", str(venv)],
        [str(venv / "bin" / "pip"), "install", "-q", "jupyterlab-git==0.55.*"],
    ):
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-1000:])
    from ocman_jupyter.demo.server import free_port

    port, token = free_port(), "benchmark"
    env = {**scene.env, "JUPYTER_TOKEN": token, "PYTHONPATH": ""}
    words = [
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={scene.folder}",
    ]
    other = subprocess.Popen(
        [str(venv / "bin" / "python"), "-m", "jupyter_server", *words],
        env=env,
        cwd=scene.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = scene.server()
    try:
        with (
            server.client() as rest,
            httpx.Client(
                base_url=f"http://127.0.0.1:{port}/",
                headers={"Authorization": f"token {token}"},
                timeout=120,
                trust_env=False,
            ) as git_rest,
        ):

            def up() -> bool:
                try:
                    return git_rest.get("api/status").status_code == 200
                except httpx.HTTPError:
                    return False

            wait_for(up, "jupyterlab-git's server", pause=0.2)

            def theirs(number: int) -> float:
                change(paths)
                began = now()
                for path in paths:
                    told(git_rest.post(f"git/{os.path.relpath(path, scene.folder)}/status"))
                return now() - began

            def ours(number: int) -> float:
                change(paths)
                began = now()
                told(rest.get("api/ocman/worktrees", params={"directory": str(root)}))
                return now() - began

            ours(0)
            figures = interleaved(repeat, {"ours": ours, "theirs": theirs})
    finally:
        other.terminate()
        other.wait()
    return [
        at_most_times(
            "list",
            "changes of 20 worktrees of 5,000 files",
            median(figures["ours"]),
            "ms",
            "jupyterlab-git 0.55, status of each",
            median(figures["theirs"]),
            1.0,
            repeat,
        ),
    ]
