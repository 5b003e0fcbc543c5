"""The demo's own Jupyter server, as a process: start, find its address, stop."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from ocman_jupyter.errors import LaunchFailed, LaunchTimeout

START_TIMEOUT = 120.0


def free_port() -> int:
    """A port on loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class JupyterServer:
    """A Jupyter server in a process group of its own.

    Parameters
    ----------
    root:
        Its root directory.
    env:
        Its environment; ``JUPYTER_RUNTIME_DIR`` in it is where the record of its address appears.
    log:
        The file that takes its output.
    lab:
        JupyterLab instead of a bare server.
    arguments:
        Further words of its command line.
    """

    def __init__(
        self, root: Path, env: Mapping[str, str], log: Path, lab: bool = False, arguments: Sequence[str] = ()
    ) -> None:
        self.log = log
        argv = [
            sys.executable,
            "-m",
            "jupyterlab" if lab else "jupyter_server",
            f"--ServerApp.root_dir={root}",
        ]
        if os.geteuid() == 0:
            argv.append("--allow-root")  # it listens on loopback only
        argv.append("--ServerApp.jpserver_extensions={'ocman_jupyter': True}")
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [*argv, *arguments], env=dict(env), cwd=root, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._record = Path(env["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{self.process.pid}.json"
        self.info: dict[str, Any] = {}

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until it answers.  Raises ``LaunchFailed`` or ``LaunchTimeout`` with its last output."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise LaunchFailed(
                    f"Jupyter ended while it was starting (exit code {self.process.returncode}).",
                    hint=None, details={"output": self.tail()},
                )  # fmt: skip
            with contextlib.suppress(OSError, ValueError, httpx.HTTPError):
                self.info = json.loads(self._record.read_text(encoding="utf-8"))
                with self.client(timeout=2) as client:
                    if client.get("api/status").status_code == 200:
                        return
            time.sleep(0.05)
        raise LaunchTimeout("Jupyter did not answer in time.", details={"output": self.tail()})

    @property
    def url(self) -> str:
        """Its base URL, with a slash at the end."""
        return str(self.info["url"])

    @property
    def token(self) -> str:
        return str(self.info.get("token") or "")

    def client(self, timeout: float = 180) -> httpx.Client:
        """A client that is logged in; paths are relative to the base URL."""
        return httpx.Client(
            base_url=self.url,
            timeout=timeout,
            trust_env=False,
            headers={"Authorization": f"token {self.token}"},
        )

    def tail(self, lines: int = 30) -> str:
        """Its last output."""
        with contextlib.suppress(OSError):
            text = "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])
            return text.replace(self.token, "…") if self.token else text
        return ""

    def stop(self, timeout: float = 20) -> None:
        """End it and its kernels; returns when they are gone."""
        for number, patience in ((signal.SIGTERM, timeout), (signal.SIGKILL, 5.0)):
            if self.process.poll() is not None:
                break
            # Jupyter ends its kernels itself when it is asked; killed, it takes the group with it.
            with contextlib.suppress(ProcessLookupError):
                if number == signal.SIGTERM:
                    self.process.send_signal(number)
                else:
                    os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
