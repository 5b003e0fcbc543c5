"""Who works inside a worktree: processes that stay, not one that looks and goes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ocman_jupyter.hosts.local.occupants import occupants

WAITS = [sys.executable, "-c", "print('on', flush=True); input()"]
LOOKS = [sys.executable, "-c", "import time; print('on', flush=True); time.sleep(0.1)"]


def test_a_process_that_stays_is_told_and_one_that_goes_is_not(tmp_path: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": tmp_path}
    with subprocess.Popen(WAITS, **pipes) as stays, subprocess.Popen(LOOKS, **pipes) as goes:
        for process in (stays, goes):
            assert process.stdout is not None and process.stdout.readline() == b"on\n"
        [reason] = occupants(str(tmp_path))
        assert reason.code == "process"
        assert [item.path.split("(pid ")[1] for item in reason.items] == [f"{stays.pid})"]
        stays.communicate(b"\n")
    assert occupants(str(tmp_path)) == []
