"""axe-core finds nothing serious in what people work with, in JupyterLab and Notebook 7, in light and in dark."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import ROOT, TOKEN, Faults, Lab, button, choose, lose_much, new_page, row, tidy
from tests.ui.scene import ANALYSIS
from tests.ui.test_cell_panels import end_kernels, notebook, run_all
from tests.ui.test_diff import HUGE, IMAGE, LOADER, NOTEBOOK
from tests.ui.test_notebook7 import NOTEBOOKS_OWN

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = pytest.mark.slow

AXE = ROOT / "labextension" / "node_modules" / "axe-core" / "axe.min.js"

LOOK = """async place => {
  // Lab's <body> has no height and clips, and so does what is in it: axe would take text for hidden, and skip it.
  document.body.style.overflow = 'visible';
  document.getElementById('main').style.overflow = 'visible';
  const { violations, passes } = await axe.run(place, { rules: { 'label-content-name-mismatch': { enabled: true } } });
  const texts = passes.find(({ id }) => id === 'color-contrast')?.nodes.length ?? 0;
  if (texts < 5) {
    return [`only ${texts} texts were looked at`];
  }
  // The names of these say in words what stands there in signs, as the design wants it.
  const signs = '.ocman-Row, .ocman-FileRow, .ocman-Button[aria-label^="Todo, "]';
  const isMeant = (id, target) =>
    id === 'label-content-name-mismatch' && document.querySelector(target).matches(signs);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes
      .filter(({ target }) => !isMeant(id, target[0]))
      .map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`));
}"""

SAID: list[dict[str, Any]] = [
    {
        "info": {"id": "msg_2", "role": "user"},
        "parts": [{"id": "p1", "type": "text", "text": "please fix the loader"}],
    },
    {
        "info": {
            "id": "msg_3", "role": "assistant", "time": {"created": 1000, "completed": 9000}, "modelID": "script",
            "cost": 0.01, "tokens": {"input": 1000, "output": 200},
        },
        "parts": [
            {"id": "p2", "type": "reasoning", "text": "It reads all at once.", "time": {"start": 1000, "end": 3000}},
            {"id": "p3", "type": "text", "text": "## Plan\n\n1. `load` [streams](loader.py)\n\n```python\nx = 1\n```"},
            {"id": "p4", "type": "tool", "tool": "bash", "state": {
                "status": "error", "input": {"command": "pytest -q"}, "error": "one failed",
                "time": {"start": 3000, "end": 4200}}},
            {"id": "p5", "type": "tool", "tool": "edit", "state": {
                "status": "completed", "input": {"filePath": "src/loader.py"}, "time": {"start": 5000, "end": 5200},
                "metadata": {"diff": LOADER["patch"]}}},
        ],
    },
    {
        "info": {"id": "msg_4", "role": "assistant", "time": {"created": 9000}},
        "parts": [
            {"id": "p6", "type": "tool", "tool": "read", "state": {
                "status": "running", "input": {"filePath": "/etc/hosts"}, "time": {"start": 9000}}},
        ],
    },
]  # fmt: skip
"""A conversation with an entry of each kind."""


@pytest.fixture(
    scope="module",
    params=[
        ("lab?reset", "JupyterLab Light"),
        ("lab?reset", "JupyterLab Dark"),
        ("lab?reset", "JupyterLab Dark High Contrast"),
        ("tree", "JupyterLab Light"),
        ("tree", "JupyterLab Dark"),
    ],
    ids=lambda param: "-".join(param).replace("?reset", ""),
)
def themed_page(request: pytest.FixtureRequest, browser: Any, lab: Lab) -> Iterator[tuple[Any, Faults]]:
    """JupyterLab or Notebook 7 with the panel in front, in a theme, and axe in the page."""
    address, theme = request.param
    with themed(browser, lab, address, theme) as (page, faults):
        if address == "tree":
            page.get_by_role("menuitem", name="View", exact=True).click()
            page.get_by_role("menuitem", name="Show ocman Panel").click()
        else:
            page.locator(".jp-SideBar [data-id='ocman-panel']").click()
        page.locator(".ocman-Panel").wait_for()
        yield page, faults


@contextlib.contextmanager
def themed(browser: Any, lab: Lab, address: str, theme: str) -> Iterator[tuple[Any, Faults]]:
    """A page in a theme, with axe in it."""
    if not AXE.exists():
        pytest.fail("axe-core is not there: run `jlpm install` in labextension/.")
    choose_theme(lab, theme)
    page, faults = new_page(browser, lab, address)
    try:
        expect(page.locator("body")).to_have_attribute("data-jp-theme-name", theme, timeout=30_000)
        page.add_script_tag(path=AXE)
        yield page, faults
    finally:
        page.context.close()
        choose_theme(lab, "JupyterLab Light")


def choose_theme(lab: Lab, theme: str) -> None:
    """As the settings editor would."""
    request = urllib.request.Request(
        f"{lab.url}lab/api/settings/@jupyterlab/apputils-extension:themes", method="PUT",
        headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        data=json.dumps({"raw": json.dumps({"theme": theme})}).encode(),
    )  # fmt: skip
    urllib.request.urlopen(request, timeout=20).close()


@pytest.fixture
def work(lab: Lab, themed_page: tuple[Any, Faults]) -> Iterator[Any]:
    """The panel on a working day."""
    page, faults = themed_page
    panel = page.locator(".ocman-Panel")
    lab.show(panel, "work")
    yield panel
    tidy(page)
    faults.found = [fault for fault in faults.found if fault != NOTEBOOKS_OWN]
    faults.none()


def found(page: Any, place: str) -> list[str]:
    """What is serious there."""
    page.mouse.move(1199, 799)
    return page.evaluate(LOOK, place)


def test_the_panel(lab: Lab, work: Any, themed_page: tuple[Any, Faults]) -> None:
    page, faults = themed_page
    choose(row(work, "Session Write tests for the loader"), "Show Details")
    expect(button(work, "Abort Write tests for the loader")).to_be_visible()
    lab.scene("refuse", message="OpenCode is on holiday.")
    fix = row(work, "Worktree fix-loader")
    choose(fix, "New Session in This Worktree")
    expect(fix.get_by_role("alert")).to_contain_text("OpenCode is on holiday.")
    faults.found.clear()  # the browser reports the refused request
    assert found(page, ".ocman-Panel") == []
    button(fix, "Dismiss").click()
    button(work, "Close details").click()


def test_a_session_with_an_ask(lab: Lab, work: Any) -> None:
    page = work.page
    row(work, "Session Fix the loader").click()
    session = page.locator(".ocman-Session")
    expect(session.get_by_role("button", name="Allow once, fix-loader, /etc/hosts")).to_have_attribute(
        "aria-disabled", "false"
    )
    for message in SAID:
        lab.scene("tell", items=["message.updated"], session_id="ses_fix", message=message)
    log = session.get_by_role("log")
    expect(log.get_by_role("article", name="read /etc/hosts, running")).to_be_visible()
    expect(log.get_by_role("heading", name="Plan")).to_be_visible()
    assert found(page, ".ocman-Session") == []


def test_a_diff(lab: Lab, work: Any) -> None:
    page = work.page
    lab.scene("differ", items=[LOADER, NOTEBOOK, IMAGE, HUGE])
    choose(row(work, "Worktree fix-loader"), "Show Diff")
    diff = page.locator(".ocman-Diff")
    expect(diff.get_by_role("table", name="Lines of src/loader.py")).to_be_visible()
    expect(diff.get_by_text("Code cell 5, modified")).to_be_visible()
    try:
        assert found(page, ".ocman-Diff") == []
        side_by_side = button(diff, "Side by side")
        if side_by_side.count():  # beside the document of Notebook 7 it is too narrow for that
            side_by_side.click()
            expect(diff.get_by_role("columnheader", name="Old text").first).to_be_attached()
            assert found(page, ".ocman-Diff") == []
    finally:
        # In Notebook 7 it is no tab.
        for tab in page.locator(".lm-TabBar-tab", has_text="Diff ").all():
            tab.locator(".lm-TabBar-tabCloseIcon").click()


def test_the_form_of_a_new_worktree_session(work: Any) -> None:
    button(work, "New worktree session").click()
    form = work.get_by_role("dialog", name="New worktree session")
    form.get_by_label("Name or task").fill("Make it stream")
    expect(form).to_contain_text(f"{Path(ANALYSIS).parent}/.worktrees/analysis/make-it-stream")
    assert found(work.page, ".ocman-Form") == []
    form.get_by_label("Name or task").fill("")
    button(form, "Cancel").click()


def test_the_dialog_of_a_removal(lab: Lab, work: Any) -> None:
    page = work.page
    lose_much(lab)
    choose(row(work, "Worktree fix-loader"), "Remove Worktree…")
    dialog = page.get_by_role("dialog", name="Remove worktree fix-loader")
    ignored = dialog.get_by_role("region", name="Files that git ignores")
    ignored.get_by_role("checkbox", name="Copy them to a folder first").check()
    expect(dialog.get_by_label("Copy 40 MB to this folder")).to_be_visible()
    dialog.get_by_text("35 more").click()
    assert found(page, ".jp-Dialog") == []
    button(dialog, "Cancel").click()
    expect(dialog).to_have_count(0)


@pytest.mark.parametrize(("address", "theme"), [("lab/tree", "JupyterLab Dark"), ("notebooks", "JupyterLab Light")])
def test_the_panels_of_a_cell(browser: Any, lab: Lab, address: str, theme: str) -> None:
    notebook(lab, "axe.ipynb", "ocman.SessionPanel(session)", "ocman.Worktrees()")
    try:
        with themed(browser, lab, f"{address}/axe.ipynb", theme) as (page, _):
            run_all(page)
            panels = page.locator("[class*=ocman-live-]")
            expect(panels).to_have_count(2)
            panels.first.locator("textarea").fill("count to three")
            panels.first.get_by_role("button", name="Send").press("Enter")
            expect(panels.first.get_by_role("button", name="Always /etc/*")).to_be_enabled()
            expect(panels.last.get_by_title("Open Fix the loader")).to_be_visible()
            assert found(page, "[class*=ocman-live-]") == []
    finally:
        end_kernels(lab)
