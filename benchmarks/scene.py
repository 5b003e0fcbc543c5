"""Where measurements happen: a state of its own, the scripted model, real OpenCode, a real Jupyter server."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from ocman_jupyter.demo.ending import end_the_rest, stop_instances
from ocman_jupyter.demo.model import ModelServer
from ocman_jupyter.demo.place import Place
from ocman_jupyter.demo.server import JupyterServer, free_port
from ocman_jupyter.opencode.registry import Record

from . import repositories
from .measure import flush_disk

CHECKOUT = Path(__file__).resolve().parents[1]
BUNDLE = CHECKOUT / "ocman_jupyter" / "labextension"
"""The built front end."""


def now() -> float:
    """Milliseconds of a clock that only goes forward."""
    return time.perf_counter() * 1000


def told(response: httpx.Response) -> Any:
    """The JSON of an answer.  Raises ``RuntimeError`` with its text when it is an error."""
    if response.status_code >= 400:
        raise RuntimeError(f"{response.request.url.path}: {response.status_code} {response.text[:500]}")
    return response.json()


def wait_for(done: Callable[[], Any], what: str, timeout: float = 60.0, pause: float = 0.02) -> Any:
    """The first true answer of ``done``.  Raises ``TimeoutError`` with ``what``."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if answer := done():
            return answer
        time.sleep(pause)
    raise TimeoutError(what)


@dataclass
class OpenCode:
    """A running OpenCode and how to speak to it."""

    url: str
    pid: int
    auth: tuple[str, str] | None = None
    process: subprocess.Popen[str] | None = None
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, auth=self.auth, timeout=120, trust_env=False)

    def session(self, directory: Path, title: str = "by hand") -> str:
        """Make a session in ``directory``; its id."""
        where = {"directory": str(directory)}
        return str(told(self.client.post("/session", params=where, json={"title": title}))["id"])

    def prompt(self, session: str, text: str) -> None:
        parts = [{"type": "text", "text": text}]
        self.client.post(f"/session/{session}/prompt_async", json={"parts": parts}).raise_for_status()

    def dispose(self, directory: Path) -> None:
        """Free the context of ``directory``."""
        self.client.post("/instance/dispose", params={"directory": str(directory)})

    def rss(self) -> int:
        """Bytes of the process and its children."""
        process = psutil.Process(self.pid)
        total = 0
        for one in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += one.memory_info().rss
        return total

    def end(self) -> None:
        self.client.close()
        if self.process is not None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(2)
                    break
            if self.process.stdout:
                self.process.stdout.close()


class Ends:
    """Listens to everything that an OpenCode says and notes when what happened."""

    def __init__(self, opencode: OpenCode) -> None:
        self._opencode = opencode
        self._times: dict[tuple[str, str], float] = {}
        self._changed = threading.Condition()
        self._connected = threading.Event()
        self._client = httpx.Client(
            base_url=opencode.url, auth=opencode.auth, timeout=httpx.Timeout(30, read=None), trust_env=False
        )
        self._closed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        if not self._connected.wait(30):
            raise TimeoutError("OpenCode's event stream")

    def _read(self) -> None:
        idle = re.compile(r'"type":"session\.idle","properties":\{"sessionID":"(ses_\w+)"')
        with (
            contextlib.suppress(httpx.HTTPError, RuntimeError),
            self._client.stream("GET", "/global/event") as stream,
        ):
            self._response = stream
            for line in stream.iter_lines():
                at = now()
                if "server.connected" in line:
                    self._connected.set()
                elif found := idle.search(line):
                    self._note("idle", found[1], at)
                elif '"type":"worktree.ready"' in line or '"type":"worktree.failed"' in line:
                    self._note("worktree", "", at)

    def _note(self, kind: str, name: str, at: float) -> None:
        with self._changed:
            self._times[kind, name] = at
            self._changed.notify_all()

    def forget(self, kind: str, name: str) -> None:
        with self._changed:
            self._times.pop((kind, name), None)

    def wait(self, kind: str, name: str, timeout: float = 120) -> float:
        """The time at which it happened, in milliseconds of :func:`now`."""
        with self._changed:
            if not self._changed.wait_for(lambda: (kind, name) in self._times, timeout):
                raise TimeoutError(f"no {kind} of {name or 'it'}")
            return self._times[kind, name]

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close()


class Scene:
    """One state (Jupyter's, OpenCode's, ours) with the scripted model, in a folder that goes at the end."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.say = say
        self.place = Place(folder)
        self.model = ModelServer().start()
        self.env = self.place.environment(self.model.url)
        # What is measured is this checkout, whatever is installed.
        paths = [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]
        self.env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        self.place.prepare(self.model.url)
        self._servers: list[JupyterServer] = []
        self._opencodes: list[OpenCode] = []

    def repository(self, kind: str) -> Path:
        self.say(f"making the repository: {repositories.KINDS[kind][0]} …")
        return repositories.make(kind, self.folder)

    def server(self, lab: bool = False, **settings: object) -> JupyterServer:
        """A real Jupyter server with the extension, or JupyterLab with the front end too.

        ``settings`` are those of ``OcmanSettings``.
        """
        words = [f"--OcmanSettings.{name}={value}" for name, value in settings.items()]
        words += ["--no-browser", f"--ServerApp.port={free_port()}"]
        if lab:
            self.show_front_end(True)
            words.append("--LabApp.expose_app_in_browser=True")
        log = self.place.state / f"jupyter-{len(self._servers)}.log"
        server = JupyterServer(self.folder, self.env, log, lab=lab, arguments=words)
        self._servers.append(server)
        server.wait_ready()
        return server

    def show_front_end(self, is_there: bool) -> None:
        """Whether pages that are opened from now on find the front end of this checkout."""
        if not (BUNDLE / "static" / "style.js").exists():
            raise RuntimeError("the front end is not built: run `jlpm install && jlpm build:prod` in labextension/")
        link = Path(self.env["JUPYTER_DATA_DIR"]) / "labextensions" / "ocman-jupyter"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        if is_there:
            link.symlink_to(BUNDLE)

    def launch(self, cwd: Path, env: Mapping[str, str] | None = None, state: str = "by-hand") -> OpenCode:
        """A bare ``opencode serve`` in ``cwd`` with a state of its own."""
        own = {key: str(self.folder / state / Path(path).name) for key, path in self.place.xdg.items()}
        argv = [shutil.which("opencode", path=self.env["PATH"]) or "opencode", "serve", "--port", "0"]
        process = subprocess.Popen(
            [*argv, "--hostname", "127.0.0.1"],
            cwd=cwd,
            env={**self.env, **own, **(env or {})},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                opencode = OpenCode(found[0], process.pid, process=process)
                self._opencodes.append(opencode)
                return opencode
        raise RuntimeError("opencode serve said nothing of its address")

    def instance(self, server: JupyterServer, root: Path) -> OpenCode:
        """The one OpenCode of ``root``, launched through us, to be spoken to by hand."""
        with server.client() as client:
            answer = told(client.post("api/ocman/ensure", json={"directory": str(root)}))
        record = self._record(answer["url"])
        opencode = OpenCode(record.url, int(record.pid or 0), (record.username, record.password or ""))
        self._opencodes.append(opencode)
        return opencode

    def _record(self, url: str) -> Record:
        [store] = Path(self.env["JUPYTER_DATA_DIR"]).rglob("ocman.sqlite")
        with contextlib.closing(sqlite3.connect(store)) as connection:
            for (text,) in connection.execute("SELECT record FROM instances"):
                record = Record.from_json(text)
                if record is not None and record.url == url:
                    return record
        raise LookupError(url)

    def settle(self, *pids: int, quiet: float = 0.3, timeout: float = 20) -> None:
        """Wait until these processes do next to nothing: one side's background work is not the next one's."""
        flush_disk()
        processes = [psutil.Process(pid) for pid in pids]

        def used() -> float:
            return sum(sum(process.cpu_times()[:2]) for process in processes)

        deadline = time.monotonic() + timeout
        before = used()
        while time.monotonic() < deadline:
            time.sleep(quiet)
            after = used()
            if after - before < 0.1 * quiet:
                return
            before = after

    def close(self) -> None:
        for server in self._servers:
            server.stop()
        if problem := stop_instances(self.env):
            self.say(f"stopping: {problem}")
        for opencode in self._opencodes:
            opencode.end()
        self.model.stop()
        if killed := end_the_rest(self.place, patience=5):
            self.say(f"killed at the end: {', '.join(killed)}")
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def scene(where: Path | None, say: Callable[[str], None]) -> Iterator[Scene]:
    """A :class:`Scene` for one case."""
    made = Scene(Path(tempfile.mkdtemp(prefix="ocman-bench-", dir=where)).resolve(), say)
    try:
        yield made
    finally:
        made.close()
