"""The worked example: a real kernel under a real Jupyter server, and the same cells in bare IPython."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
import websocket

from tests.notebook.live import instances, live_project

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "notebooks" / "worktree-sessions.ipynb"
TOKEN = "token-of-the-worked-example"


def cells() -> list[str]:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    nbformat.validate(notebook)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def project(
    repository: Callable[..., Path],
    scripted_model: Any,
    opencode_binaries: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    root = repository(files={"loader.py": "x = 1\n"})
    with live_project(root, scripted_model.url, opencode_binaries[-1], monkeypatch):
        yield root


@pytest.fixture
def server(project: Path, tmp_path: Path) -> Iterator[str]:
    """A Jupyter server of the project; gives its address."""
    config = Path(os.environ["JUPYTER_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "jupyter_server_config.py").write_text(
        "c.ServerApp.jpserver_extensions = {'ocman_jupyter': True}\n"
        f"c.ServerApp.root_dir = {str(project)!r}\nc.ServerApp.base_url = '/a%40b/'\n"
        f"c.IdentityProvider.token = {TOKEN!r}\nc.ServerApp.allow_root = True\nc.ServerApp.port = 0\n"
    )
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", "--no-browser"],
            stdout=output,
            stderr=output,
            cwd=project,
        )
    record = Path(os.environ["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{process.pid}.json"
    deadline = time.monotonic() + 60
    try:
        while not record.exists():
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield str(json.loads(record.read_text())["url"])
    finally:
        process.terminate()
        process.wait(timeout=30)


class ServedKernel:
    """A kernel that the server started, spoken to as a page does it."""

    def __init__(self, server: str) -> None:
        headers = {"Authorization": f"token {TOKEN}"}
        self._http = httpx.Client(base_url=server, headers=headers, timeout=60)
        self.id = self._http.post("api/kernels", json={"name": "python3"}).raise_for_status().json()["id"]
        self._socket = websocket.create_connection(
            f"ws{server.removeprefix('http')}api/kernels/{self.id}/channels",
            header=[f"Authorization: token {TOKEN}"],
            timeout=120,
            suppress_origin=True,
        )

    def run(self, code: str) -> dict[str, Any]:
        """``{"status", "text"}``: all that the cell showed, as text."""
        key = uuid.uuid4().hex
        header = {
            "msg_id": key,
            "msg_type": "execute_request",
            "session": key,
            "username": "",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        self._socket.send(
            json.dumps(
                {
                    "header": header,
                    "parent_header": {},
                    "metadata": {},
                    "content": content,
                    "channel": "shell",
                    "buffers": [],
                }
            )
        )
        shown: list[str] = []
        status, idle = "", False
        while not (status and idle):
            message = json.loads(self._socket.recv())
            if message["parent_header"].get("msg_id") != key:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "execute_reply":
                status = content["status"]
            elif kind == "status":
                idle = content["execution_state"] == "idle"
            elif kind == "stream":
                shown.append(content["text"])
            elif kind == "error":
                shown += content["traceback"]
            elif "data" in content:
                shown.append(content["data"].get("text/plain", ""))
        return {"status": status, "text": "\n".join(shown)}

    def close(self) -> None:
        self._socket.close()
        self._http.delete(f"api/kernels/{self.id}")
        self._http.close()


def looks_right(project: Path, shown: dict[str, str]) -> None:
    """What each cell of the example has to show."""
    tree = project.parent / ".worktrees" / project.name / "tidy-loader"

    def of(beginning: str) -> str:
        return next(text for code, text in shown.items() if code.startswith(beginning))

    assert "Would make a worktree of a new branch tidy-loader" in of("%ocman wt tidy-loader --dry-run")
    assert f"at {tree}" in of("%%ocman wt tidy-loader") and "prompt was sent" in of("%%ocman wt tidy-loader")
    assert f"DONE {tree}\ntidy-loader" in of("%ocman watch")
    assert "tidy-loader" in of("%ocman worktrees") and "tidy-loader" in of("%ocman sessions")
    assert "loader.py" in of("%%ocman prompt") and "Nothing needs you." in of("%ocman asks")
    assert "DONE try-weights" in of("import ocman_jupyter")
    assert of("sessions = await").strip().endswith("2")
    assert "invalid_branch" in of("try:")
    assert "Worktree removed with its branch." in of("%ocman rm tidy-loader --delete-branch")


def test_in_a_kernel_under_a_server(project: Path, server: str) -> None:
    kernel = ServedKernel(server)
    try:
        shown: dict[str, str] = {}
        for code in cells():
            answer = kernel.run(code)
            assert answer["status"] == "ok", f"{code}\n{answer['text']}"
            shown.setdefault(code, answer["text"])
        looks_right(project, shown)
        assert len(instances(project)) == 1
        where = kernel.run("from ocman_jupyter.notebook.api import DESK; print(DESK.verbs().client.where)")[
            "text"
        ]
        assert server in where
        everything = "\n".join(shown.values()) + where
        assert TOKEN not in everything and "password" not in everything.lower()
    finally:
        kernel.close()
    assert not (project.parent / ".worktrees" / project.name / "tidy-loader").exists()


def test_the_same_cells_in_bare_ipython(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import json, sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from IPython.utils.capture import capture_output\n"
        "shell = InteractiveShell.instance()\n"
        "shown = []\n"
        f"for code in json.loads({json.dumps(json.dumps(cells()))}):\n"
        "    with capture_output() as captured:\n"
        "        result = shell.run_cell(code, store_history=True)\n"
        "    text = captured.stdout + captured.stderr\n"
        "    value = '' if result.result is None else repr(result.result)\n"
        "    shown.append([code, result.success, text + value])\n"
        "from ocman_jupyter.notebook.api import DESK\n"
        "json.dump([DESK.verbs().client.where, shown], open(sys.argv[1], 'w'))\n"
    )
    out = tmp_path / "shown.json"
    done = subprocess.run(
        [sys.executable, str(script), str(out)], cwd=project, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    where, shown = json.loads(out.read_text())
    assert where == "in process"
    for code, success, text in shown:
        assert success, f"{code}\n{text}"
    first: dict[str, str] = {}
    for code, _, text in shown:
        first.setdefault(code, text)
    looks_right(project, first)
    assert len(instances(project)) == 1


def test_the_example_is_clean() -> None:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    for cell in notebook.cells:
        assert not cell.get("outputs"), "the example is kept without outputs"
        assert "/home/" not in cell.source and "/Users/" not in cell.source
