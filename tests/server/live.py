"""A Jupyter server in a process of its own, with the extension and a fake host behind it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-tests"

CONFIG = """
c.ServerApp.jpserver_extensions = {extensions!r}
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = 0
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.allow_root = True
c.ServerApp.allow_unauthenticated_access = False
c.ServerApp.base_url = "/a%40b/"
c.IdentityProvider.token = {token!r}
c.ServerApp.root_dir = {root!r}
"""

FAKE_HOST = """
import sys
sys.path.insert(0, {root!r})


def router(settings):
    from ocman_jupyter.hosts.router import Router
    from tests.server.fake_host import FakeMachine

    machine = FakeMachine()
    {drive}
    return Router(machine.host())


c.OcmanExtension.host_factory = router
"""


@dataclass(frozen=True)
class Server:
    url: str
    """Ends with a slash."""
    pid: int
    seconds: float
    """From its start until it answered."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"token {TOKEN}"}

    def get(self, address: str, timeout: float = 10) -> tuple[int, bytes]:
        request = urllib.request.Request(self.url + address, headers=self.headers)
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.status, response.read()


@contextlib.contextmanager
def server(extension: bool = True, drive: str = "pass", seconds: float = 60) -> Iterator[Server]:
    """Start one, wait until it answers, and stop it at the end.

    ``drive`` is a statement about ``machine``, the fake host.
    """
    with tempfile.TemporaryDirectory(prefix="oct-", dir="/tmp") as place:
        home = Path(place)
        extensions = {"jupyter_server_terminals": False, **({"ocman_jupyter": True} if extension else {})}
        text = CONFIG.format(extensions=extensions, token=TOKEN, root=place)
        if extension:
            text += FAKE_HOST.format(root=str(ROOT), drive=drive)
        (home / "config.py").write_text(text)
        environment = {
            **os.environ,
            "HOME": place,
            "JUPYTER_CONFIG_DIR": f"{place}/config",
            "JUPYTER_DATA_DIR": f"{place}/data",
            "JUPYTER_RUNTIME_DIR": f"{place}/runtime",
            "XDG_RUNTIME_DIR": place,
            "JUPYTER_NO_CONFIG": "",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        began = time.monotonic()
        with open(home / "log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "jupyter_server", f"--config={home / 'config.py'}"],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=place,
            )
        try:
            yield _wait(process, home, began, seconds)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()


def _wait(process: subprocess.Popen[bytes], home: Path, began: float, seconds: float) -> Server:
    while time.monotonic() - began < seconds:
        if process.poll() is not None:
            break
        record = home / "runtime" / f"jpserver-{process.pid}.json"
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(record.read_text())
            found = Server(known["url"], process.pid, 0)
            found.get("api/status")
            return Server(found.url, process.pid, time.monotonic() - began)
        time.sleep(0.01)
    raise AssertionError(f"the server does not answer:\n{(home / 'log').read_text()[-3000:]}")
