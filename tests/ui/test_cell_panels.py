"""The panels of a notebook in a browser: live in a cell, answered by clicks, readable once the kernel is gone."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import TOKEN, Lab, kernel_ready, new_page

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = pytest.mark.slow

PREPARE = """
from tests.notebook.fake import install, permission
fake = install()
fake.add_tree("plots")
fake.add_tree("fix-loader", changes={"modified": 5, "untracked": 0, "conflicted": 0}, ahead=2, behind=1)
plots = fake.add_session("/repo/.worktrees/plots", "<script>document.title = 'gone'</script> Plots").id
session = fake.add_session("/repo/.worktrees/fix-loader", "Fix the loader", cost=0.12).id
fake.todo = [{"content": "Read data", "status": "completed"}, {"content": "Fit", "status": "in_progress"}]
fake.history[session] = [
    {"info": {"id": "m1", "role": "user"}, "parts": [{"id": "a", "type": "text", "text": "please fix the loader"}]},
    {"info": {"id": "m2", "role": "assistant"}, "parts": [
        {"id": "b", "type": "tool", "tool": "bash", "state": {"status": "completed",
            "input": {"command": "pytest -q"}, "time": {"start": 1000, "end": 4200}}},
        {"id": "c", "type": "text", "text": "Done:\\n\\n```python\\nfor row in rows:\\n    yield row\\n```\\n"}]},
]
fake.turn_ask = permission("per_1", session)
import ocman_jupyter as ocman
%load_ext ocman_jupyter
"""


def notebook(lab: Lab, name: str, *sources: str) -> None:
    """A notebook in the server's folder."""
    bare = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**bare, "id": f"c{number}", "source": code} for number, code in enumerate((PREPARE, *sources))]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (lab.root / name).write_text(json.dumps(content))


def run_all(page: Any) -> None:
    """Run the notebook, also on a page that is not quite there yet or asks which kernel is meant."""
    select = page.get_by_role("dialog").get_by_role("button", name="Select Kernel")
    begun = page.locator(".jp-InputPrompt").filter(has_text="[*]")
    before = page.locator(".jp-OutputArea-output").count()
    page.locator(".jp-Cell").first.wait_for()
    if page.url.count("/lab/"):
        kernel_ready(page)
    for _ in range(5):
        page.locator(".jp-Cell").first.click()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        for _ in range(40):
            if begun.count() or page.locator(".jp-OutputArea-output").count() > before:
                return
            if select.is_visible():
                select.click()
            page.wait_for_timeout(100)
    raise AssertionError("the notebook did not run")


def picture(page: Any, name: str) -> None:
    """Kept where a person who looks at the panels wants it."""
    if os.environ.get("OCMAN_PICTURES"):
        page.screenshot(path=str(Path(os.environ["OCMAN_PICTURES"]) / f"{name}.png"))


def end_kernels(lab: Lab) -> None:
    headers = {"Authorization": f"token {TOKEN}"}
    with urllib.request.urlopen(urllib.request.Request(lab.url + "api/sessions", headers=headers)) as answer:
        sessions = json.loads(answer.read())
    for session in sessions:
        urllib.request.urlopen(
            urllib.request.Request(lab.url + f"api/sessions/{session['id']}", headers=headers, method="DELETE")
        ).close()


@pytest.mark.parametrize("address", ["lab/tree", "notebooks"])
def test_a_session_panel_is_live_and_stays_readable(browser: Any, lab: Lab, address: str) -> None:
    notebook(lab, "session.ipynb", "ocman.SessionPanel(session)")
    page, _ = new_page(browser, lab, f"{address}/session.ipynb" + ("?reset" if address == "lab/tree" else ""))
    try:
        run_all(page)
        panel = page.locator("[class*=ocman-live-]")
        still = page.locator("[class*=ocman-still-]")
        expect(panel.get_by_text("please fix the loader")).to_be_visible()
        expect(still).to_be_hidden()
        picture(page, f"session-{address[:3]}")
        panel.locator("textarea").fill("count to three")
        # By the keyboard: a notification may lie over it.
        panel.get_by_role("button", name="Send").press("Enter")
        expect(panel.get_by_text("outside the worktree:").first).to_be_visible()
        expect(panel.get_by_role("button", name="Always /etc/*")).to_be_enabled()
        picture(page, f"ask-{address[:3]}")
        wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.outerHTML.slice(0, 200))"
        assert panel.locator(".widget-box").evaluate_all(wide) == []
        panel.get_by_role("button", name="Once").click()
        expect(panel.get_by_text("Allowed once")).to_be_visible()
        expect(panel.get_by_text("did: count to three")).to_be_visible()
        expect(panel.locator("textarea")).to_have_value("")
        page.get_by_role("button", name=re.compile("^Save")).first.click()
        until(page, lambda: "did: count to three" in (lab.root / "session.ipynb").read_text())
        end_kernels(lab)
        page.goto(f"{lab.url}{address}/session.ipynb")
        expect(still.get_by_text("did: count to three")).to_be_visible()
        expect(still.get_by_text("as of ")).to_be_visible()
        picture(page, f"still-{address[:3]}")
    finally:
        page.context.close()
        end_kernels(lab)


def until(page: Any, condition: Any) -> None:
    for _ in range(150):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not happen in time")


def test_worktrees_open_sessions_and_nothing_of_theirs_runs(browser: Any, lab: Lab) -> None:
    notebook(lab, "trees.ipynb", "ocman.Worktrees()", '%ocman wt idea "count"')
    page, _ = new_page(browser, lab, "lab/tree/trees.ipynb?reset")
    try:
        run_all(page)
        panel = page.locator("[class*=ocman-live-]").first
        expect(panel.get_by_text("<script>").first).to_be_visible()
        expect(panel.get_by_text("idea").first).to_be_visible()
        panel.get_by_title("Open Fix the loader").click()
        expect(panel.get_by_text("please fix the loader")).to_be_visible()
        # Run again: the cell's earlier panel is closed and one new one is there.
        expect(page.get_by_text("did: count").first).to_be_attached()
        picture(page, "trees")
        assert "gone" not in page.title()
        run_all(page)
        expect(page.locator("[class*=ocman-live-]")).to_have_count(2)
    finally:
        page.context.close()
        end_kernels(lab)


def test_what_is_watched_in_a_cell_is_not_told_once_more(browser: Any, lab: Lab) -> None:
    watched = 'fake.add_session("/repo/.worktrees/fix-loader", "Write tests for the loader", id="ses_tests")'
    notebook(lab, "watched.ipynb", watched, 'ocman.SessionPanel("ses_tests")')
    lab.scene("set", name="work")
    page, _ = new_page(browser, lab, "lab/tree/watched.ipynb?reset")
    try:
        run_all(page)
        panel = page.locator("[class*=ocman-live-]")
        expect(panel.get_by_text("Write tests for the loader")).to_be_visible()
        for session_id in ("ses_tests", "ses_explore"):
            lab.scene("update", session_id=session_id, status="busy")
            expect(page.get_by_role("contentinfo").get_by_text("1 busy")).to_be_visible()
            lab.scene("update", session_id=session_id, status="idle")
            expect(page.get_by_role("contentinfo").get_by_text("1 busy")).to_have_count(0)
        # What was told stays in this list when it does not stand on the screen any more.
        page.locator(".jp-Notification-Status").click()
        told = page.locator(".jp-Notification-List-Item")
        expect(told.filter(has_text="Explore data has finished.")).to_have_count(1)
        expect(told.filter(has_text="Write tests for the loader has finished.")).to_have_count(0)
    finally:
        page.context.close()
        end_kernels(lab)
