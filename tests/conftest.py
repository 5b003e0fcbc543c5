"""What all tests share: each in its own home, real repositories, and nothing left running at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

pytest_plugins = ["pytest_jupyter.jupyter_server"]

MARK = "OCMAN_TEST_RUN"
"""Set in our own environment, so every process that the tests start carries it."""

REAL_DATA_HOME = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
"""Before any test has a home of its own: where ``ocman-jupyter setup`` may have put OpenCode."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell starts what runs in its background; the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# --- each test on its own --------------------------------------------------------------------


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HOME, XDG and Jupyter directories of this test alone; no git or tmux of whoever runs it."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "TMUX", "OPENCODE_", "JUPYTERHUB_", "JPY_")) or name == "JUPYTER_TOKEN":
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    # Sockets have short paths; pytest's own directories are long.
    runtime = Path(tempfile.mkdtemp(prefix="oct-", dir="/tmp"))
    places = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_RUNTIME_DIR": runtime,
        "JUPYTER_CONFIG_DIR": tmp_path / "config",
        "JUPYTER_DATA_DIR": tmp_path / "data",
        "JUPYTER_RUNTIME_DIR": tmp_path / "runtime",
        "IPYTHONDIR": home / ".ipython",
    }
    for name, place in places.items():
        monkeypatch.setenv(name, str(place))
    yield home
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def runtime_dir() -> Path:
    """This test's short, private directory for sockets."""
    return Path(os.environ["XDG_RUNTIME_DIR"])


# --- repositories ----------------------------------------------------------------------------


def run_git(directory: Path, *args: str) -> str:
    """Run git in ``directory`` and give its output."""
    done = subprocess.run(["git", "-C", str(directory), *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def git() -> Callable[..., str]:
    """``git(directory, "status", …)`` runs git and gives its output."""
    return run_git


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Path]:
    """``repository(name="project", files={"a.py": "…"}, commit=True)`` makes one and gives its path."""

    def make(name: str = "project", files: dict[str, str] | None = None, commit: bool = True) -> Path:
        root = (tmp_path / "repositories" / name).resolve()
        root.mkdir(parents=True)
        run_git(root, "init", "--quiet", "--initial-branch=main")
        settings = {"user.name": "Test", "user.email": "test@example.com", "commit.gpgsign": "false"}
        for key, value in settings.items():
            run_git(root, "config", key, value)
        for path, text in ({"README.md": f"# {name}\n"} if files is None else files).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        if commit:
            run_git(root, "add", "--all")
            run_git(root, "commit", "--quiet", "--allow-empty", "--message", "first")
        return root

    return make


# --- the real OpenCode -----------------------------------------------------------------------


def _binaries() -> list[Path]:
    given = os.environ.get("OCMAN_TEST_OPENCODE")
    if given:
        return [Path(path) for path in given.split(os.pathsep) if path]
    found = shutil.which("opencode")
    if found:
        return [Path(found)]
    private = Path(REAL_DATA_HOME) / "jupyter" / "ocman" / "opencode"
    return [
        path
        for path in (private / "node_modules" / ".bin" / "opencode", private / "bin" / "opencode")
        if path.exists()
    ][:1]


BINARIES = _binaries()


@pytest.fixture
def opencode_binaries() -> list[Path]:
    """The real OpenCode: all of ``OCMAN_TEST_OPENCODE`` (a path list), else the one on PATH, else our own."""
    if not BINARIES:
        pytest.skip("no opencode: install it, or name it in OCMAN_TEST_OPENCODE")
    return list(BINARIES)


@pytest.fixture
def scripted_model() -> Iterator[object]:
    """A running scripted model; its ``url`` is what ``demo.model.opencode_environment`` wants."""
    model = pytest.importorskip("ocman_jupyter.demo.model")
    with model.ModelServer() as server:
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the argument ``opencode_binary`` runs once with each real binary."""
    if "opencode_binary" in metafunc.fixturenames:
        missing = pytest.param(None, marks=pytest.mark.skip(reason="no opencode binary"))
        metafunc.parametrize("opencode_binary", BINARIES or [missing], ids=_named)


def _named(binary: Path | None) -> str:
    """``1.18.33`` of ``…/1.18.33/node_modules/.bin/opencode``: versions live in directories of their own."""
    return "none" if binary is None else binary.parts[max(-4, -len(binary.parts))]


@pytest.fixture
def connections_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Fails when connections to an OpenCode that this test opened are open at its end; gives all of them."""
    import aiohttp

    opened = []
    begin = aiohttp.ClientSession.__init__

    def noted(session: aiohttp.ClientSession, *args: object, **options: object) -> None:
        begin(session, *args, **options)
        opened.append(session)

    monkeypatch.setattr(aiohttp.ClientSession, "__init__", noted)
    yield opened
    left = [session for session in opened if not session.closed]
    assert not left, f"{len(left)} of {len(opened)} are not closed"


# --- nothing is left -------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fails when a process that the tests started is still there after the last test, and ends it."""
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    yield
    deadline = time.monotonic() + 10
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    told = [_told(process) for process in left]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    if told:
        pytest.fail("processes left by the tests:\n" + "\n".join(told), pytrace=False)


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get(MARK) == mark and "resource_tracker" not in " ".join(process.cmdline()):
                found.append(process)
    return found


def _told(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {process.name()}: {' '.join(process.cmdline())[:200]} (in {process.cwd()})"
    return f"{process.pid} (gone meanwhile)"
