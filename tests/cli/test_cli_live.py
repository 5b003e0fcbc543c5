"""The shell command with the real git, tmux and OpenCode."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.notebook.live import instances, live_project

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(300)]

COMMAND = [sys.executable, "-m", "ocman_jupyter"]


@pytest.fixture
def project(
    repository: Callable[..., Path],
    scripted_model: Any,
    opencode_binary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    root = repository()
    with live_project(root, scripted_model.url, opencode_binary, monkeypatch):
        yield root


def ocman(project: Path, *words: str, code: int = 0) -> Any:
    """The JSON that the command answers."""
    done = subprocess.run(
        [*COMMAND, *words, "--json"], cwd=project, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_main_job(project: Path) -> None:
    made = ocman(project, "wt", "fix-loader", "-p", "RUN bash: pwd")
    tree = made["worktree_path"]
    assert made["prompt_sent"] and made["session"]["directory"] == tree
    watched = subprocess.run([*COMMAND, "watch"], cwd=project, capture_output=True, text=True, timeout=120)
    assert watched.returncode == 0 and f"DONE {tree}" in watched.stdout, watched.stderr
    again = ocman(project, "wt", "fix-loader", "-p", "RUN bash: pwd")
    assert again["session_reused"] and again["session_id"] == made["session_id"]
    answer = ocman(project, "prompt", "fix", "-p", "SAY hello", "--wait")
    assert answer["answer"] == "hello"
    ocman(project, "prompt", "fix", "-p", "READ /etc/hosts")
    deadline = time.monotonic() + 60
    while not (asks := ocman(project, "asks")["asks"]):
        assert time.monotonic() < deadline
    assert asks[0]["always"] == ["/etc/*"]
    ocman(project, "reply", "reject")
    (Path(tree) / "new.txt").write_text("x")
    refused = ocman(project, "rm", "fix-loader", code=1)
    assert refused["code"] == "would_lose_work"
    assert "untracked" in [reason["code"] for reason in refused["details"]["reasons"]]
    ocman(project, "abort", "fix-loader")
    # What can be rescued is, whatever the reason; only what is left must be accepted.
    accept = ",".join(r["code"] for r in refused["details"]["reasons"] if r["code"] != "untracked")
    words = ["--rescue", str(project.parent / "saved"), *(["--accept", accept] if accept else [])]
    removed = ocman(project, "rm", "fix-loader", *words, "--delete-branch")
    assert removed["branch_deleted"]
    assert [Path(one["to"]).read_text() for one in removed["rescued"] if one["path"] == "new.txt"] == ["x"]
    assert len(instances(project)) == 1


def test_an_interrupted_launch_goes_on_and_the_next_command_uses_it(project: Path) -> None:
    first = subprocess.Popen(
        [*COMMAND, "wt", "fix", "-p", "SAY hi"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not instances(project):
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=30)
    assert first.returncode == 130 and "the next command uses it" in err and "Traceback" not in err
    before = [process.pid for process in instances(project)]
    made = ocman(project, "wt", "fix", "-p", "SAY hi")
    assert made["session_id"]
    assert [process.pid for process in instances(project)] == before


def test_attach_is_opencodes_own_screen_and_the_password_is_in_no_argv(project: Path) -> None:
    ocman(project, "ensure")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.execve(COMMAND[0], [*COMMAND, "attach"], {**os.environ, "TERM": "xterm-256color"})
    shown = b""
    deadline = time.monotonic() + 90
    process = psutil.Process(pid)
    try:
        while len(shown) < 2000 or "attach" not in process.cmdline():
            assert time.monotonic() < deadline, shown[-500:]
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 65536)
        words, environment = process.cmdline(), process.environ()
        password = environment["OPENCODE_SERVER_PASSWORD"]
        assert password and not [word for word in words if password in word]
        assert words[words.index("--dir") + 1] == str(project)
        assert password.encode() not in shown
    finally:
        for one in [*process.children(recursive=True), process]:
            with suppress(psutil.Error):
                one.kill()
        os.waitpid(pid, 0)
        os.close(terminal)
    assert len(instances(project)) == 1


def test_attach_without_a_terminal_launches_nothing(project: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "attach"],
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "needs a terminal" in done.stderr and not instances(project)
