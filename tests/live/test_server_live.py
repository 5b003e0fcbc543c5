"""A real Jupyter server on the real host: many faces at once, kills in the middle, and the fuzzed contract."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ocman_jupyter.demo.server import JupyterServer
from ocman_jupyter.server import openapi
from tests.live.waiting import opencodes

pytestmark = [pytest.mark.live, pytest.mark.timeout(280)]

KERNEL = """
import ocman_jupyter, json, os
os.chdir({directory!r})
ocman_jupyter.local()
ocman_jupyter.ensure()
"""


class Faces:
    """One user's Jupyter server, shells and kernels on one repository."""

    def __init__(self, root: Path, home: Path, binary: Path, runtime: Path) -> None:
        self.root, self.home, self.runtime = root, home, runtime
        self.binary = binary
        os.environ["PATH"] = os.pathsep.join([str(binary.parent), os.environ["PATH"]])
        self.server: JupyterServer | None = None

    def start(self) -> httpx.Client:
        """Start a Jupyter server; a client that is logged in."""
        arguments = ["--no-browser", "--ServerApp.port=0", "--ServerApp.port_retries=0"]
        self.server = JupyterServer(self.home, os.environ, self.home / "jupyter.log", arguments=arguments)
        self.server.wait_ready()
        return self.server.client()

    def kill(self) -> None:
        """The server is gone without a word."""
        assert self.server is not None
        os.kill(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()

    def shell(self, *words: str, directory: Path | None = None) -> dict[str, Any]:
        """What `ocman-jupyter … --json` prints."""
        done = subprocess.run(
            [sys.executable, "-m", "ocman_jupyter", *words, "--json"],
            cwd=directory or self.root, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        return json.loads(done.stdout)

    def opencodes(self) -> list[int]:
        return opencodes(self.home.parent)

    def end(self) -> None:
        if self.server is not None:
            self.server.stop()
        self.shell("stop", "--force")


@pytest.fixture
def faces(
    repository: Callable[..., Path], opencode_binary: Path, offline: dict[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Faces]:  # fmt: skip
    monkeypatch.setenv("PATH", os.environ["PATH"])
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])))
    made = repository(files={"src/deep/a.py": "", "README.md": "hello\n"})
    faces = Faces(made, tmp_path / "home", opencode_binary, tmp_path)
    try:
        yield faces
    finally:
        faces.end()


def wait_for(look: Callable[[], Any], seconds: float = 90.0) -> Any:
    """The first true answer of ``look``."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(0.1)
    return found


def told(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code < 300, response.text
    return response.json()


def test_shells_kernels_and_rest_at_once_get_one_opencode(
    faces: Faces, git: Callable[..., str], tmp_path: Path
) -> None:
    """Also killed, it comes back once; and a new Jupyter server adopts it (hazards 9, 16, 19)."""
    linked = tmp_path / "elsewhere" / "tree"
    git(faces.root, "worktree", "add", "--quiet", "--detach", str(linked))
    link = tmp_path / "link"
    link.symlink_to(faces.root)
    places = [faces.root, faces.root / "src" / "deep", linked, linked / "src", link]
    rest = faces.start()

    def by_rest(place: Path) -> int:
        return told(rest.post("api/ocman/ensure", json={"directory": str(place)}))["pid"]

    def by_shell(place: Path) -> int:
        return faces.shell("ensure", str(place))["pid"]

    def by_kernel(place: Path) -> int:
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel(kernel_name="python3")
        try:
            answer = client.execute_interactive(
                KERNEL.format(directory=str(place)), silent=False, store_history=False, timeout=200,
                user_expressions={"pid": "ocman_jupyter.ensure().pid"}, output_hook=lambda message: None,
            )  # fmt: skip
            assert answer["content"]["status"] == "ok", answer["content"]
            return int(answer["content"]["user_expressions"]["pid"]["data"]["text/plain"])
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)

    ways = [(by_rest, p) for p in places] + [(by_shell, p) for p in places[:3]] + [(by_kernel, p) for p in places[3:]]
    with ThreadPoolExecutor(len(ways)) as pool:
        pids = set(pool.map(lambda way: way[0](way[1]), ways))
    assert len(pids) == 1
    assert faces.opencodes() == [*pids]

    os.kill(pids.pop(), signal.SIGKILL)
    body = {"directory": str(linked), "branch": "after", "prompt": "RUN bash: pwd"}
    made = told(rest.post("api/ocman/worktrees", json=body))
    assert made["worktree_path"] == str(faces.root.parent / ".worktrees" / "project" / "after")
    (healed,) = faces.opencodes()

    faces.kill()
    rest = faces.start()
    (instance,) = told(rest.get("api/ocman/instances"))["instances"]
    assert (instance["pid"], instance["owner"]) == (healed, "ocman")
    again = told(rest.post("api/ocman/ensure", json={"directory": str(faces.root)}))
    assert (again["pid"], again["launched"]) == (healed, False)
    assert faces.opencodes() == [healed]


def test_killed_in_the_middle_of_a_create_the_next_one_completes_it(faces: Faces, tmp_path: Path) -> None:
    """SIGKILL of the Jupyter server while git checks out; hazards 11, 32."""
    hook = faces.root / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-began\nsleep 3\n")
    hook.chmod(0o755)
    rest = faces.start()
    told(rest.post("api/ocman/ensure", json={"directory": str(faces.root)}))
    body = {"directory": str(faces.root), "branch": "half", "request_id": "r-1"}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: rest.post("api/ocman/worktrees", json=body))
        wait_for((tmp_path / "hook-began").exists)
        faces.kill()
        with pytest.raises(httpx.HTTPError):
            first.result()
    hook.unlink()
    rest = faces.start()
    made = told(rest.post("api/ocman/worktrees", json=body))
    listed = told(rest.get("api/ocman/worktrees", params={"directory": str(faces.root)}))["worktrees"]
    (half,) = [w for w in listed if w["branch"] == "half"]
    assert (half["state"], half["changes"]) == ("ok", {"modified": 0, "untracked": 0, "conflicted": 0})
    assert [s["id"] for s in half["sessions"]] == [made["session_id"]]
    assert len(faces.opencodes()) == 1


def test_no_secret_is_in_argv_log_or_answers(faces: Faces) -> None:
    """Hazards 82, 92."""
    rest = faces.start()
    ensured = rest.post("api/ocman/ensure", json={"directory": str(faces.root)})
    pid = told(ensured)["pid"]
    password = psutil.Process(pid).environ()["OPENCODE_SERVER_PASSWORD"]
    assert len(password) >= 20
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            assert password not in " ".join(process.cmdline())
    body = {"directory": str(faces.root), "branch": "secret", "prompt": "RUN bash: env"}
    made = rest.post("api/ocman/worktrees", json=body)
    session = told(made)["session_id"]

    def answer() -> str:
        if told(rest.get(f"api/ocman/sessions/{session}"))["status"] != "idle":
            return ""
        text = rest.get(f"api/ocman/sessions/{session}/messages").text
        return text if "PATH=" in text else ""

    said = wait_for(answer)
    assert faces.server is not None
    texts = [ensured.text, made.text, said, faces.server.log.read_text("utf-8", "replace")]
    for place in (faces.runtime / "data").rglob("*.log"):
        texts.append(place.read_text("utf-8", "replace"))
    for text in texts:
        assert password not in text


# --- the contract ----------------------------------------------------------------------------

WRITTEN = yaml.safe_load(openapi.PATH.read_text(encoding="utf-8"))
SCHEMA = schemathesis.openapi.from_dict(WRITTEN)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = int(os.environ.get("OCMAN_FUZZ_REAL_EXAMPLES", "8"))


@pytest.mark.timeout(600)
def test_openapi_fuzzed_against_the_real_host(faces: Faces) -> None:
    """Drawn requests, with the directories, paths and ids that are really there put into some."""
    rest = faces.start()
    body = {"directory": str(faces.root), "branch": "fuzzed"}
    made = told(rest.post("api/ocman/worktrees", json=body))
    there = {
        "directory": [str(faces.root), made["worktree_path"], str(faces.root / "src"), "/", "/nowhere"],
        "path": [made["worktree_path"], str(faces.root), str(faces.root / "src")],
        "id": [made["session_id"], "per_none", "ses_none"],
        "branch": ["main", "fuzzed", "a/b", "fuzzed/x", "-x", "é"],
    }
    assert faces.server is not None
    url, headers = f"{faces.server.url}api/ocman", {"Authorization": f"token {faces.server.token}"}
    failures: list[str] = []
    seen: Counter[int] = Counter()
    for found in SCHEMA.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/stream") or operation.path == "/events":
            continue  # they do not end by themselves

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(), data=st.data())
        def run(case: Any, data: Any) -> None:
            for holder in (case.path_parameters, case.query, case.body):
                for name in set(there) & set(holder if isinstance(holder, dict) else ()):
                    holder[name] = data.draw(st.sampled_from(there[name]))
            for holder in (case.query, case.body):
                if isinstance(holder, dict):
                    holder.pop("host", None)
            response = case.call(base_url=url, headers=headers, timeout=200)
            seen[response.status_code] += 1
            case.validate_response(response, checks=CHECKS)

        try:
            run()
        except BaseException as error:  # all routes, then what is wrong
            if isinstance(error, KeyboardInterrupt):
                raise
            failures.append(f"{operation.method.upper()} {operation.path}: {error!s:.1500}")
    assert not failures, "\n\n".join(failures)
    assert seen[200] > 20 and {400, 404, 409} <= set(seen), seen  # it got as far as the work itself
    assert len(faces.opencodes()) <= 1
