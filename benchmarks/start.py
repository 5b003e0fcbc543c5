"""What the package adds to the start of a server, of a kernel and of a Python."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ocman_jupyter.demo.server import free_port

from .measure import Row, at_most, interleaved, median
from .scene import Scene, now

SERVER_LIMIT = 300.0
MAGICS_LIMIT = 300.0
IMPORT_LIMIT = 100.0

_IMPORT = """
import time
began = time.perf_counter()
import ocman_jupyter
print((time.perf_counter() - began) * 1000)
"""
_MAGICS = """
import time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
began = time.perf_counter()
shell.run_line_magic("load_ext", "ocman_jupyter")
print((time.perf_counter() - began) * 1000)
"""


def start(scene: Scene, repeat: int) -> list[Row]:
    """Server starts in pairs, with and without the extension; the other two in processes of their own."""

    def printed(code: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", code], env=scene.env, cwd=scene.folder, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-1000:])
        return float(done.stdout.split()[-1])

    sides = {
        "with": lambda number: _server_start(scene, True),
        "without": lambda number: _server_start(scene, False),
        "magics": lambda number: printed(_MAGICS),
        "import": lambda number: printed(_IMPORT),
    }
    for warm in sides.values():
        warm(0)
    figures = interleaved(repeat, sides)
    adds = median(figures["with"]) - median(figures["without"])
    case = "start"
    return [
        at_most(case, "what the extension adds to the start of a Jupyter server", adds, "ms", SERVER_LIMIT, repeat),
        at_most(case, "`%load_ext ocman_jupyter`", median(figures["magics"]), "ms", MAGICS_LIMIT, repeat),
        at_most(case, "`import ocman_jupyter`", median(figures["import"]), "ms", IMPORT_LIMIT, repeat),
    ]


def _server_start(scene: Scene, extension: bool) -> float:
    """From the start of the process until the record of its address is there."""
    argv = [
        sys.executable,
        "-m",
        "jupyter_server",
        "--no-browser",
        "--allow-root",
        f"--ServerApp.port={free_port()}",
        f"--ServerApp.root_dir={scene.folder}",
        f"--ServerApp.jpserver_extensions={{'ocman_jupyter': {extension}}}",
    ]
    began = now()
    process = subprocess.Popen(
        argv,
        env=scene.env,
        cwd=scene.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    record = Path(scene.env["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{process.pid}.json"
    try:
        while not record.exists():
            if process.poll() is not None or now() - began > 60_000:
                raise RuntimeError("a Jupyter server did not start")
            time.sleep(0.002)
        return now() - began
    finally:
        process.terminate()
        process.wait()
