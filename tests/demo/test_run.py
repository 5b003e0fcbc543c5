"""The demo on real parts: JupyterLab, OpenCode, the scripted model."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from jupyter_client.blocking import BlockingKernelClient

from ocman_jupyter.demo.ending import demo_processes, end_the_rest, opencode_processes
from ocman_jupyter.demo.place import MARK, Place

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo_env(opencode_binary: Path) -> dict[str, str]:
    """An environment whose only OpenCode is this one."""
    paths = [str(opencode_binary.parent), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT)}


@pytest.mark.live
@pytest.mark.timeout(300)
def test_the_check_shows_one_process_and_the_agent_in_its_worktree(demo_env: dict[str, str], tmp_path: Path) -> None:
    env = {**demo_env, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "ocman_jupyter", "demo", "--check"], env=env, cwd=tmp_path, text=True,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert told["session"].startswith("ses_")
    assert told["worktree"].endswith("/.worktrees/harvest/fix-loader")
    assert told["answer"] == told["worktree"]
    assert told["opencode processes"] == "1"
    assert not list(tmp_path.glob("ocman-demo-*")), "the folder is removed"
    homes = [Path(env[name]) for name in ("XDG_DATA_HOME", "JUPYTER_DATA_DIR")]
    databases = [file for home in homes for file in home.rglob("*") if file.suffix in (".db", ".sqlite")]
    assert databases == [], "no state of the user's is touched"


@pytest.mark.live
def test_a_check_that_cannot_work_fails_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "opencode"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo 1.18.33; exit; }\necho "no licence found" >&2\nexit 7\n')
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "ocman_jupyter", "demo", "--check"], env={**env, "TMPDIR": str(tmp_path)},
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "launch_failed" in done.stderr
    assert "no licence found" in done.stderr
    assert not list(tmp_path.glob("ocman-demo-*"))


@pytest.fixture
def running(demo_env: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """``ocman-jupyter demo`` as a person starts it."""
    folder = str(tmp_path / "demo")
    process = subprocess.Popen(
        [sys.executable, "-m", "ocman_jupyter", "demo", "--no-browser", "--folder", folder],
        env=demo_env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield process
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def printed(client: httpx.Client, place: Place, notebook: str, code: str) -> str:
    """What ``code`` shows in the kernel of ``notebook``, as text."""
    kernel = {"name": "python3"}
    body = {"path": notebook, "name": notebook, "type": "notebook", "kernel": kernel}
    started = client.post("api/sessions", json=body).json()["kernel"]["id"]
    talk = BlockingKernelClient()
    talk.load_connection_file(str(place.runtime / f"kernel-{started}.json"))
    talk.start_channels()
    shown: list[str] = []

    def hook(message: dict[str, Any]) -> None:
        content = message["content"]
        shown.append(content.get("data", {}).get("text/plain") or content.get("text") or "")
        shown.extend(content.get("traceback", []))

    try:
        talk.wait_for_ready(timeout=60)
        talk.execute_interactive(code, timeout=60, output_hook=hook)
    finally:
        talk.stop_channels()
    return "".join(shown)


@pytest.mark.live
@pytest.mark.timeout(300)
def test_ctrl_c_ends_jupyter_and_opencode_and_keeps_the_project(
    running: subprocess.Popen[str], tmp_path: Path, repository: Callable[..., Path]
) -> None:
    place = Place((tmp_path / "demo").resolve())
    assert running.stderr is not None
    said: list[str] = []
    address = None
    for line in running.stderr:
        said.append(line)
        if found := re.search(r"open (http://\S+?)lab/tree/(\S+)\?token=(\w+)", line):
            address = found
        if "Ctrl-C" in line:
            break
    assert address, said
    assert address[2] == "harvest/explore.ipynb"
    assert any("demo model (scripted, offline)" in line for line in said)
    headers = {"Authorization": f"token {address[3]}"}
    other = repository("other")
    with httpx.Client(base_url=address[1], headers=headers, timeout=90, trust_env=False) as client:
        assert client.get("lab").status_code == 200
        made = client.post("api/ocman/worktrees", json={"directory": str(place.project), "branch": "idea"})
        assert made.status_code == 201, made.text
        assert [one["path"] for one in made.json()["carried"]] == ["data/yields.csv"]
        tree = Path(made.json()["worktree_path"])
        assert (tree / "data/yields.csv").exists()
        inside = client.get(f"api/contents/{tree.relative_to(place.folder)}/data/yields.csv")
        assert inside.status_code == 200, "its files can be opened in Jupyter"
        code = "%load_ext ocman_jupyter\ntrees = %ocman wts\nprint(trees[1].path)"
        assert printed(client, place, address[2], code) == f"{tree}\n"
        client.post("api/ocman/sessions", json={"directory": str(other), "prompt": "READ /etc/hosts"})
        deadline = time.monotonic() + 60
        while not client.get("api/ocman/asks").json()["asks"]:
            assert time.monotonic() < deadline
    assert len(opencode_processes(place)) == 1
    running.send_signal(signal.SIGINT)
    said = running.stderr.readlines()
    assert f"demo: ending the OpenCode of {place.project}\n" in said
    assert f"demo: ending the OpenCode of {other}, 1 session waits for an answer\n" in said
    assert running.wait(60) == 0
    assert demo_processes(place) == []
    assert (place.project / ".git").exists()
    assert Path(made.json()["worktree_path"]).exists()


@pytest.mark.live
@pytest.mark.timeout(300)
def test_a_check_that_is_ended_in_the_middle_leaves_nothing(demo_env: dict[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ocman_jupyter", "demo", "--check"], env={**demo_env, "TMPDIR": str(tmp_path)},
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("worktree: "):
            break
    [folder] = tmp_path.glob("ocman-demo-*")
    assert opencode_processes(Place(folder.resolve()))
    process.terminate()
    assert process.wait(60) == 130
    process.stdout.close()
    assert demo_processes(Place(folder.resolve())) == []
    assert not folder.exists()


def test_only_the_demos_own_processes_are_ended(tmp_path: Path) -> None:
    place = Place(tmp_path)
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours = subprocess.Popen(sleeper, env={**os.environ, MARK: str(tmp_path)})
    other = subprocess.Popen(sleeper, env={**os.environ, MARK: str(tmp_path / "another")})
    try:
        deadline = time.monotonic() + 10
        while [process.pid for process in demo_processes(place)] != [ours.pid]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        [told] = end_the_rest(place, patience=0.1)
        assert told.startswith(str(ours.pid))
        assert ours.wait(10) == -signal.SIGKILL
        assert psutil.Process(other.pid).status() != psutil.STATUS_ZOMBIE
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
