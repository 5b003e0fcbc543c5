"""A real JupyterLab on a made-up host (`scene`), and a real browser that looks at it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.browser import ARGUMENTS, chromium
from ocman_jupyter.setup import numbers, version_of
from tests.conftest import BINARIES

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "ocman_jupyter" / "labextension"
TOKEN = "a-token-of-the-tests"
BASE_URL = "/a%40b/"
"""``/a@b/``, as Jupyter wants it: odd characters find addresses that were glued together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.ui)


OURS = ".lm-TabBar-tab[data-ocman-status]"
"""The tabs of sessions."""


class Lab:
    """JupyterLab and Notebook 7 in a process of their own, with a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "root"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}{BASE_URL}"
        self._port_file = home / "scene-port"
        self._process: subprocess.Popen[bytes] | None = None
        self._prepare()

    def _prepare(self) -> None:
        self.root.mkdir()
        (self.root / "notes").mkdir()
        empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (self.root / "empty.ipynb").write_text(json.dumps(empty))
        labextensions = self.home / "data" / "labextensions"
        labextensions.mkdir(parents=True)
        (labextensions / "ocman-jupyter").symlink_to(BUNDLE)
        config = self.home / "config"
        (config / "labconfig").mkdir(parents=True)
        # The news toast and the dialog about it swallow clicks.
        disabled = {"@jupyterlab/apputils-extension:announcements": True}
        (config / "labconfig" / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
        (config / "jupyter_server_config.py").write_text(
            "from tests.ui.scene import scene\n"
            "c.OcmanExtension.host_factory = scene\n"
            "c.ServerApp.jpserver_extensions = {'ocman_jupyter': True, 'notebook': True}\n"
            f"c.ServerApp.base_url = {BASE_URL!r}\nc.ServerApp.root_dir = {str(self.root)!r}\n"
            f"c.IdentityProvider.token = {TOKEN!r}\n"
            "c.ServerApp.open_browser = False\nc.LabApp.open_browser = False\n"
            f"c.ServerApp.port = {self.port}\nc.ServerApp.port_retries = 0\nc.ServerApp.allow_root = True\n"
        )

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._port_file.unlink(missing_ok=True)
        places = {
            "HOME": self.home / "home", "JUPYTER_CONFIG_DIR": self.home / "config",
            "JUPYTER_DATA_DIR": self.home / "data", "JUPYTER_RUNTIME_DIR": self.home / "runtime",
            "XDG_CONFIG_HOME": self.home / "xdg", "XDG_DATA_HOME": self.home / "xdg",
            "OCMAN_SCENE_PORT_FILE": self._port_file,
        }  # fmt: skip
        (self.home / "home").mkdir(exist_ok=True)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        own = {name: str(place) for name, place in places.items()}
        environment = {**os.environ, **own, "PYTHONPATH": path}
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab"], env=environment, cwd=self.root, stdout=log, stderr=log
            )
        self._wait()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        request = urllib.request.Request(self.url + "api/status", headers={"Authorization": f"token {TOKEN}"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=5):
                    if self._port_file.exists():
                        return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail("JupyterLab did not start:\n" + (self.home / "server.log").read_text()[-4000:])
            time.sleep(0.1)

    def show(self, panel: Any, name: str) -> None:
        """Set the scene, and wait until the panel shows it and nothing older."""
        version = self.scene("set", name=name)
        panel.get_by_text(f"OpenCode {version}").wait_for()

    def scene(self, do: str, **arguments: Any) -> Any:
        """Tell the made-up host to do something; its answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port_file.read_text()}/",
            data=json.dumps({"do": do, **arguments}).encode(), method="POST",
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture(scope="session")
def front_end() -> Path:
    """The built front end."""
    if not (BUNDLE / "static" / "style.js").exists():
        pytest.fail("The front end is not built: run `jlpm install && jlpm build:prod` in labextension/.")
    return BUNDLE


@pytest.fixture(scope="session")
def newest_opencode() -> Path:
    """Of those that are given."""
    if not BINARIES:
        pytest.skip("no opencode: install it, or name it in OCMAN_TEST_OPENCODE")
    return max(BINARIES, key=lambda binary: numbers(version_of(binary)))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, front_end: Path, nothing_left_running: None) -> Iterator[Lab]:
    """The running server; one for all tests, each sets its own scene."""
    lab = Lab(tmp_path_factory.mktemp("lab").resolve())
    try:
        lab.start()
        yield lab
    finally:
        lab.stop()


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """In place of pytest-jupyter's, which would meet playwright's event loop."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """In place of pytest-jupyter's: no server of its own runs here."""


# Playwright's event loop lives in this thread while a browser is there, and no other one can run then:
# the tests of other modules must not meet it.
@pytest.fixture(scope="module")
def browser(nothing_left_running: None) -> Iterator[Any]:
    """Chromium, from wherever it is installed."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=20_000)  # the machine may be busy with other tests
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()


class Faults:
    """What went wrong inside a page."""

    def __init__(self, page: Any) -> None:
        self.found: list[str] = []
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        # A page without a server says so itself; that is not a fault of ours.
        if message.type == "error" and "net::ERR_" not in message.text and "WebSocket" not in message.text:
            self.found.append(f"console: {message.text} ({message.location.get('url')})")

    def none(self) -> None:
        found, self.found = self.found, []
        assert found == []


def new_page(browser: Any, lab: Lab, address: str, **options: Any) -> tuple[Any, Faults]:
    """A page of its own with nothing remembered."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, **options)
    page = context.new_page()
    page.set_default_timeout(15_000)
    faults = Faults(page)
    page.goto(f"{lab.url}{address}{'&' if '?' in address else '?'}token={TOKEN}")
    return page, faults


def row(panel: Any, name: str) -> Any:
    """The row whose accessible name begins with ``name``."""
    return panel.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)}(,|$)"))


def choose(row: Any, item: str) -> None:
    """Choose from the menu of a row."""
    row.click(button="right")
    # Its name ends with the keys that do the same.
    row.page.get_by_role("menuitem", name=re.compile(rf"^{re.escape(item)}")).click()


def button(place: Any, name: str) -> Any:
    return place.get_by_role("button", name=name, exact=True)


def kernel_ready(page: Any) -> None:
    """The kernel of the open notebook answers: its own indicator says idle from the first moment."""
    status = page.get_by_role("contentinfo").get_by_role("button", name=re.compile(r"\| Idle$"))
    status.wait_for(timeout=60_000)


def lose_much(lab: Lab) -> None:
    """From now on a removal would lose one changed and many ignored files."""
    many = [{"path": f"out/{i}.npy", "bytes": 1_000_000} for i in range(40)]
    lab.scene("lose", items=[
        {"code": "uncommitted", "message": "One file.", "items": [{"path": "a.py"}], "total_bytes": 10},
        {"code": "ignored", "message": "40 files.", "items": many, "total_bytes": 40_000_000},
    ])  # fmt: skip


@pytest.fixture(scope="module")
def lab_page(browser: Any, lab: Lab) -> Iterator[tuple[Any, Faults]]:
    page, faults = new_page(browser, lab, "lab?reset")
    open_panel(page)
    yield page, faults
    page.context.close()


def open_panel(page: Any) -> None:
    page.locator(".jp-LauncherCard").first.wait_for()
    settle(page)
    tab = page.locator(".jp-SideBar [data-id='ocman-panel']")
    tab.wait_for()
    tab.click()
    page.locator(".ocman-Panel").wait_for()


@pytest.fixture
def panel(lab: Lab, lab_page: tuple[Any, Faults]) -> Iterator[Any]:
    """The panel in JupyterLab, with nothing chosen; the page must be without any fault afterwards."""
    page, faults = lab_page
    panel = page.locator(".ocman-Panel")
    if not panel.is_visible() or page.locator(f"{OURS}, .jp-Dialog").count():  # a test before failed
        page.goto(f"{lab.url}lab?reset")
        open_panel(page)
    faults.found.clear()
    for name in ("Close details", "Cancel", "Show all"):
        button = panel.get_by_role("button", name=name, exact=True)
        if button.count():
            button.click()
    yield panel
    try:
        faults.none()
    finally:
        tidy(page)


def tidy(page: Any) -> None:
    """Close the tabs of sessions, and what was told of them: the next scene has others of the same names."""
    close = page.locator(f"{OURS} .lm-TabBar-tabCloseIcon")
    for _ in range(close.count()):
        close.first.click()
    page.evaluate("document.querySelectorAll('.jp-Notification-Toast-Close').forEach(one => one.click())")
    page.locator(".ocman-Ask.ocman-mod-done").first.wait_for(state="detached")
    settle(page)


def settle(page: Any) -> None:
    """What came or went is known to the application: whatever is in front now has taken the focus."""
    page.evaluate("""async () => {
        for (let i = 0; i < 3; i++) {
            await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
        }
        await new Promise(done => requestIdleCallback(done));
    }""")
