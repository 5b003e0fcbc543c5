"""Takes the pictures in docs/images: the demo project in JupyterLab, with sessions in several states."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from ocman_jupyter.demo.ending import end_the_rest, stop_instances
from ocman_jupyter.demo.model import ModelServer, Turn, next_turn
from ocman_jupyter.demo.place import Place
from ocman_jupyter.demo.sample import NOTEBOOK, make_sample, notebook
from ocman_jupyter.demo.server import JupyterServer, free_port

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
BROWSER = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
DEADLINE = 120.0
LARGEST = 200_000
"""Bytes of one picture: they are in the repository."""

# --- what the agents were told, in plain words, and what the scripted model does then

STREAM = "Let the loader yield one row at a time. Keep the tests green."
MACHINE = "Which machine has the measurements of 2025? Look it up in /etc/hosts."
BEND = "More rain helps only up to a point: fit two lines that meet."
PLOTS = "Plot the yield of each field over the years."

SESSIONS = {
    "fix-loader": ("Make the loader stream", (STREAM, MACHINE), "needs_you"),
    "rain-bend": ("Fit a bend", (BEND,), "idle"),
    "plots": ("Plots of the fields", (PLOTS,), "busy"),
}
"""Branch → title, prompts one after the other, and the state in which it ends up."""

ROWS = '''\
def rows(path: Path) -> Iterator[Measurement]:
    """The measurements of the file, one at a time."""
    with Path(path).open(newline="") as file:
        for row in csv.DictReader(file):
            yield Measurement(row["field"], *(float(row[name]) for name in ("rain", "temperature", "tonnes")))


def load(path: Path) -> list[Measurement]:
    """All measurements of the file."""
    return list(rows(path))
'''

FIT_BEND = '''\
"""Two lines that meet: more rain helps only up to a point."""

from collections.abc import Sequence
from typing import NamedTuple

from .fit import Line, fit_line


class Bend(NamedTuple):
    at: float
    below: Line
    above: Line


def fit_bend(x: Sequence[float], y: Sequence[float], at: float) -> Bend:
    """One line for all below ``at`` and one for the rest."""
    points = list(zip(x, y))
    low, high = ([point for point in points if (point[0] < at) is below] for below in (True, False))
    return Bend(at, fit_line(*zip(*low)), fit_line(*zip(*high)))
'''


def tool(name: str, **arguments: Any) -> str:
    return f"TOOL {name} {json.dumps(arguments)}"


def todos(done: int) -> str:
    """The agent's list, with so many of it done."""
    words = ["Read the loader", "Yield rows one by one", "Run the tests", "Say where the rest of the data is"]
    states = ["completed" if at < done else "in_progress" if at == done else "pending" for at in range(len(words))]
    pairs = zip(words, states, strict=True)
    listed = [{"content": word, "status": state, "priority": "medium"} for word, state in pairs]
    return tool("todowrite", todos=listed)


def scripts(project: Path) -> dict[str, str]:
    """What is done for each prompt."""
    loader = (project / "src" / "harvest" / "load.py").read_text()
    load = loader[loader.index("def load(") :]
    steps = {
        STREAM: [
            "READ src/harvest/load.py",
            "READ tests/test_harvest.py",
            todos(1),
            tool(
                "edit", filePath="src/harvest/load.py",
                oldString="import csv\n", newString="import csv\nfrom collections.abc import Iterator\n",
            ),
            tool("edit", filePath="src/harvest/load.py", oldString=load, newString=ROWS),
            "RUN bash: python3 -m unittest discover tests",
            todos(3),
            "SAY The loader **streams** now: `rows()` yields one measurement at a time, and `load()` still "
            "gives the whole list. Both tests pass.",
        ],
        MACHINE: ["READ /etc/hosts"],
        BEND: [
            "READ src/harvest/__init__.py",
            tool("write", filePath="src/harvest/bend.py", content=FIT_BEND),
            tool(
                "edit", filePath="src/harvest/__init__.py",
                oldString="from .fit import", newString="from .bend import Bend, fit_bend\nfrom .fit import",
            ),
            'EDIT src/harvest/__init__.py: ["Line", "Measurement", -> ["Bend", "Line", "Measurement", "fit_bend",',
            "RUN bash: sed -i 's/import fit_line, load/import fit_bend, load/; s/line = fit_line(/bend = fit_bend(/; "
            "s/in measurements])/in measurements], at=600)/; s/{line[.]/{bend.below./g' explore.ipynb",
            "SAY Done: `fit_bend` fits one line below 600 mm of rain and one above.",
        ],
        PLOTS: ["SLEEP 600"],
    }  # fmt: skip
    return {prompt: "\n".join(lines) for prompt, lines in steps.items()}


class Player:
    """The scripted model for prompts in plain words."""

    def __init__(self, played: dict[str, str]) -> None:
        self._scripts = played

    def __call__(self, body: dict[str, Any], note: str = "") -> Turn:
        messages = [self._scripted(message) for message in body.get("messages") or []]
        return next_turn({**body, "messages": messages}, note)

    def _scripted(self, message: dict[str, Any]) -> dict[str, Any]:
        if message.get("role") == "user":
            said = json.dumps(message.get("content"))
            for prompt, script in self._scripts.items():
                if prompt in said:
                    return {**message, "content": script}
        return message


def prepare(client: httpx.Client, place: Place) -> None:
    """Open the sessions, give them their prompts, and wait until each is in its state."""
    for branch, (title, prompts, state) in SESSIONS.items():
        first, *others = prompts
        body = {"directory": str(place.project), "branch": branch, "prompt": first, "title": title}
        answer = client.post("api/ocman/worktrees", json=body)
        answer.raise_for_status()
        session = answer.json()["session_id"]
        for prompt in others:
            until(client, session, "idle")
            client.post(f"api/ocman/sessions/{session}/prompt", json={"text": prompt}).raise_for_status()
        until(client, session, state)


def until(client: httpx.Client, session: str, state: str) -> None:
    """Wait until the session has worked and is in this state."""
    deadline = time.monotonic() + DEADLINE
    while True:
        found = client.get(f"api/ocman/sessions/{session}").json()
        messages = client.get(f"api/ocman/sessions/{session}/messages").json()["messages"]
        # A prompt that was only just sent leaves the session idle for a moment.
        has_answered = bool(messages) and messages[-1]["info"]["role"] == "assistant"
        if found["status"] == state and has_answered:
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"the session {found['title']!r} is {found['status']}, not {state}")
        time.sleep(0.3)


# --- pictures


def open_page(browser: Browser, server: JupyterServer, path: str, **size: int) -> Page:
    """JupyterLab with this file, as somebody sees it who was never there."""
    page = browser.new_context(viewport={"width": 1180, "height": 720, **size}).new_page()
    page.set_default_timeout(DEADLINE * 1000)
    page.goto(f"{server.url}lab/tree/{path}?reset&token={server.token}")
    page.locator("#ocman-panel").wait_for(state="attached")
    return page


def go_dark(page: Page) -> None:
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_text("Theme", exact=True).first.hover()
    dark = re.compile("^JupyterLab Dark$")
    page.get_by_role("menuitemcheckbox", name=dark).or_(page.get_by_role("menuitem", name=dark)).first.click()
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")


def kernel_rests(page: Page) -> None:
    """The status bar's word: a notebook's own indicator says idle before its kernel answers."""
    page.get_by_role("contentinfo").get_by_role("button", name=re.compile(r"\| Idle$")).wait_for()


def show_panel(page: Page) -> None:
    tab = page.locator(".lm-TabBar-tab[data-id='ocman-panel']")
    if "lm-mod-current" not in (tab.get_attribute("class") or ""):
        tab.click()
    for branch in SESSIONS:
        row(page, f"Worktree {branch}").wait_for()
    # The notebook beside it is drawn bit by bit.
    kernel_rests(page)
    # How much changed is read once the panel is seen.
    page.locator(".ocman-Row .ocman-Fact").first.wait_for()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("treeitem", name=re.compile(f"^{re.escape(name)}(,|$)"))


def show_session(page: Page) -> None:
    """The tab of the session that asks, when its ask can be answered."""
    title, _, _ = SESSIONS["fix-loader"]
    row(page, f"Session {title}").click()
    page.locator(".ocman-Dock [data-reply=once][aria-disabled=false]").wait_for()
    page.locator(".ocman-Composer").get_by_label("Model").wait_for()
    page.locator(".ocman-Markdown-piece.ocman-mod-drawn").first.wait_for()


def show_diff(page: Page) -> None:
    row(page, "Worktree rain-bend").click(button="right")
    page.get_by_role("menuitem", name="Show Diff").click()
    page.locator(".ocman-Diff .ocman-Cell").first.wait_for()
    page.get_by_role("navigation", name="Changed files").get_by_role("button", name="explore.ipynb").click()


def show_cell(page: Page) -> None:
    """The panel of the session that asks, in the notebook that is open."""
    kernel_rests(page)
    # Lab may ask which kernel is meant although the notebook says it.
    select = page.get_by_role("dialog").get_by_role("button", name="Select Kernel")
    page.add_locator_handler(select, lambda: select.click())
    page.locator(".jp-Cell .cm-content").first.click()
    page.keyboard.press("Control+Enter")
    page.locator("[class*=ocman-live-] textarea").click()
    page.locator("[class*=ocman-live-]").get_by_role("button", name="Always").wait_for()
    kernel_rests(page)


def write_notebook(place: Place) -> str:
    """A notebook that shows a session, where git does not look; its path from the project."""
    code = 'import ocman_jupyter as ocman\n\nocman.SessionPanel("fix-loader")'
    cell = {
        "cell_type": "code", "id": "panel", "metadata": {}, "source": code, "outputs": [], "execution_count": None
    }  # fmt: skip
    path = place.project / "results" / "idea.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**notebook(), "cells": [cell]}))
    return str(path.relative_to(place.project))


def take(page: Page, name: str, part: str | None = None) -> None:
    """A picture of the page, or of the part that this selector finds."""
    page.mouse.move(2, 400)  # where nothing shows that the pointer is over it
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)  # what moves comes to rest
    path = IMAGES / f"{name}.png"
    (page.locator(part) if part else page).screenshot(path=path, animations="disabled")
    size = path.stat().st_size
    print(f"{path}  {size // 1000} kB")
    if size > LARGEST:
        raise SystemExit(f"{path} is too large to be committed")


def take_all(browser: Browser, server: JupyterServer, place: Place) -> None:
    page = open_page(browser, server, NOTEBOOK)
    show_panel(page)
    take(page, "panel")
    show_session(page)
    take(page, "session")
    show_diff(page)
    take(page, "diff")

    page = open_page(browser, server, write_notebook(place), height=820)
    show_panel(page)  # else a notification of the ask lies over the cell
    show_cell(page)
    take(page, "cell", part="#jp-main-dock-panel")

    # The last: the server remembers the theme.
    page = open_page(browser, server, NOTEBOOK)
    go_dark(page)
    show_panel(page)
    take(page, "panel-dark")
    show_session(page)
    take(page, "session-dark")


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    place = Place(Path(tempfile.mkdtemp(prefix="ocman-demo-")).resolve())
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        make_sample(place.folder)
        player = Player(scripts(place.project))
        with patch("ocman_jupyter.demo.model.next_turn", player), ModelServer() as model:
            env = place.environment(model.url)
            place.prepare(model.url)
            arguments = ["--no-browser", f"--ServerApp.port={free_port()}"]
            server = JupyterServer(place.project, env, place.log, lab=True, arguments=arguments)
            try:
                server.wait_ready()
                with server.client() as client, sync_playwright() as playwright:
                    prepare(client, place)
                    browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
                    take_all(browser, server, place)
                    browser.close()
            finally:
                server.stop()
                stop_instances(env)
    finally:
        end_the_rest(place)
        place.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
