"""Takes the pictures in docs/images: the demo project in JupyterLab, with sessions in several states."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from ocman_jupyter.demo.ending import end_the_rest, stop_instances
from ocman_jupyter.demo.model import ModelServer
from ocman_jupyter.demo.place import Place
from ocman_jupyter.demo.sample import NOTEBOOK, make_sample
from ocman_jupyter.demo.server import JupyterServer, free_port

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
BROWSER = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]
DEADLINE = 120.0

SESSIONS = {
    "fix-loader": "WRITE notes.md: The loader reads one row at a time now.\nSAY The loader streams: memory stays flat.",
    "try-splines": "READ /etc/hosts",
    "plots": "SLEEP 600",
}
"""Branch → script: one that is done, one that asks, one that is at work."""
STATES = {"fix-loader": "idle", "try-splines": "needs_you", "plots": "busy"}


def prepare(client: httpx.Client, place: Place) -> None:
    """Open the sessions and wait until each is in its state."""
    wanted: dict[str, str] = {}
    for branch, script in SESSIONS.items():
        body = {"directory": str(place.project), "branch": branch, "prompt": script, "title": branch.replace("-", " ")}
        answer = client.post("api/ocman/worktrees", json=body)
        answer.raise_for_status()
        wanted[answer.json()["session_id"]] = STATES[branch]
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        now = {i: client.get(f"api/ocman/sessions/{i}").json()["status"] for i in wanted}
        if now == wanted:
            return
        time.sleep(0.3)
    raise SystemExit(f"the sessions are {now}, not {wanted}")


def take(page: Page, server: JupyterServer, place: Place, theme: str) -> None:
    page.goto(f"{server.url}lab/tree/{NOTEBOOK}?token={server.token}")
    page.wait_for_selector("#ocman-panel", state="attached", timeout=DEADLINE * 1000)
    if theme == "dark":
        page.evaluate("document.body.dataset.jpThemeLight = 'false'")
        page.get_by_role("menuitem", name="Settings").click()
        page.get_by_text("Theme", exact=True).first.hover()
        page.get_by_role("menuitemcheckbox", name="JupyterLab Dark", exact=True).or_(
            page.get_by_role("menuitem", name="JupyterLab Dark", exact=True)
        ).first.click()
    tab = page.locator(".lm-TabBar-tab[data-id='ocman-panel']")
    if "lm-mod-current" not in (tab.get_attribute("class") or ""):
        tab.click()
    page.get_by_text("splines").first.wait_for(timeout=DEADLINE * 1000)
    page.get_by_text("plots").first.wait_for(timeout=DEADLINE * 1000)
    page.wait_for_load_state("networkidle")
    name = "panel.png" if theme == "light" else "panel-dark.png"
    page.screenshot(path=IMAGES / name)
    print(IMAGES / name)


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    place = Place(Path(tempfile.mkdtemp(prefix="ocman-demo-")).resolve())
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        with ModelServer() as model:
            env = place.environment(model.url)
            place.prepare(model.url)
            make_sample(place.folder)
            arguments = ["--no-browser", f"--ServerApp.port={free_port()}"]
            server = JupyterServer(place.project, env, place.log, lab=True, arguments=arguments)
            try:
                server.wait_ready()
                with server.client() as client, sync_playwright() as playwright:
                    prepare(client, place)
                    browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
                    size: Any = {"width": 1180, "height": 720}
                    for theme in ("light", "dark"):
                        page = browser.new_context(viewport=size).new_page()
                        take(page, server, place, theme)
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
