"""A real browser that looks at the scene's JupyterLab, and the clocks inside its pages."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ocman_jupyter.demo.server import JupyterServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

TIMEOUT = 60_000

# A moment is the first frame in which a test holds, and counts once that frame was painted.
_CLOCKS = """
const clocks = (window.ocmanClocks = {
  moments: {},
  tasks: [],
  watch(name, test) {
    const look = () => {
      if (test()) {
        setTimeout(() => { clocks.moments[name] = performance.now(); });
      } else {
        requestAnimationFrame(look);
      }
    };
    look();
  }
});
new PerformanceObserver(list => {
  clocks.tasks.push(...list.getEntries().map(({ startTime, duration }) => [startTime, duration]));
}).observe({ type: 'longtask', buffered: true });
const isShown = element => !!element && element.getClientRects().length > 0;
clocks.watch('lab', () =>
  isShown(document.getElementById('jp-main-dock-panel')) && !document.getElementById('jupyterlab-splash'));
clocks.watch('panel', () => isShown(document.querySelector(".ocman-Panel [role='treeitem']")));
"""


def chromium() -> str | None:
    """The browser, from wherever it is installed; ``None``: playwright's own."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        try:
            yield opened
        finally:
            opened.close()


class Task(NamedTuple):
    """A task of a page's main thread, in milliseconds."""

    wall: float
    """Until it was over, with all that the machine did in between."""
    own: float
    """Of the processor."""


_TASK = "ThreadControllerImpl::RunTask"
"""What Chromium's traces call one."""


class Lab:
    """A page of JupyterLab with nothing remembered and nothing cached."""

    def __init__(self, browser: Browser, server: JupyterServer, address: str) -> None:
        context = browser.new_context(viewport={"width": 1600, "height": 900})
        self.page: Page = context.new_page()
        self.page.set_default_timeout(TIMEOUT)
        self.page.add_init_script(_CLOCKS)
        self.loaded: set[str] = set()
        """Paths of the extension's files that the page asked for."""
        self.page.on("response", lambda response: self._note(response.url))
        self._protocol = context.new_cdp_session(self.page)
        # Of the processor's time: what else runs on the machine must not count.
        self._protocol.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(f"{server.url}{address}{'&' if '?' in address else '?'}token={server.token}")
        self.wait("lab")

    def _note(self, url: str) -> None:
        _, found, path = url.partition("/extensions/ocman-jupyter/")
        if found:
            self.loaded.add(path.partition("?")[0])

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: Any) -> None:
        self.page.context.close()

    def wait(self, moment: str) -> float:
        """When this moment was, in milliseconds from the start of the page."""
        found = self.page.wait_for_function("name => ocmanClocks.moments[name]", arg=moment)
        return float(found.json_value())

    def clock(self) -> float:
        return float(self.page.evaluate("performance.now()"))

    def long_tasks(self, since: float) -> list[float]:
        """Milliseconds of each task of the main thread over 50 ms that began after ``since``."""
        tasks = self.page.evaluate("ocmanClocks.tasks")
        return [took for began, took in tasks if began >= since]

    @contextlib.contextmanager
    def traced(self) -> Iterator[list[Task]]:
        """All tasks of the main thread meanwhile; they are there when it is over."""
        tasks: list[Task] = []
        opened = self.page.context.browser
        assert opened is not None
        opened.start_tracing(page=self.page, categories=["toplevel"])
        try:
            yield tasks
        finally:
            events = json.loads(opened.stop_tracing())["traceEvents"]
            mains = {
                (event["pid"], event["tid"])
                for event in events
                if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
            }
            tasks += [
                Task(event["dur"] / 1000, event["tdur"] / 1000)
                for event in events
                if event["name"] == _TASK and "tdur" in event and (event["pid"], event["tid"]) in mains
            ]

    def metrics(self) -> dict[str, float]:
        """What the browser counts of the page: seconds of its main thread, bytes, nodes."""
        answer = self._protocol.send("Performance.getMetrics")
        return {metric["name"]: metric["value"] for metric in answer["metrics"]}

    def settled(self, quiet: float = 500, share: float = 0.03) -> dict[str, float]:
        """The metrics once the main thread has had next to nothing to do for ``quiet`` milliseconds."""
        before, deadline = self.metrics(), time.monotonic() + TIMEOUT / 1000
        while time.monotonic() < deadline:
            self.page.wait_for_timeout(quiet)
            after = self.metrics()
            if (after["TaskDuration"] - before["TaskDuration"]) * 1000 < share * quiet:
                return before
            before = after
        raise TimeoutError("the page has always something to do")

    def collect_garbage(self) -> dict[str, float]:
        """The metrics right after all garbage was collected."""
        self._protocol.send("HeapProfiler.collectGarbage")
        return self.metrics()

    def show_panel(self) -> None:
        self.page.locator(".jp-SideBar [data-id='ocman-panel']").click()
        self.wait("panel")

    def open_session(self, title: str) -> None:
        """As people do it: a click on its row."""
        self.page.get_by_role("treeitem", name=f"Session {title}").click()
        self.page.locator(".ocman-Session:visible").get_by_role("log", name=f"Conversation {title}").wait_for()
