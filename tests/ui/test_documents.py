"""Open documents follow what an agent does to their files, and nothing that was typed is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ui.conftest import Lab, button, kernel_ready
from tests.ui.test_manners import toast

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

TEXT = "first\n" + "".join(f"line {i}\n" for i in range(200))


@pytest.fixture
def work(lab: Lab, panel: Any) -> Any:
    """A folder in the server's root directory, and the page.  What it opened is closed afterwards."""
    lab.show(panel, "quiet")
    folder = lab.root / "worked"
    folder.mkdir(exist_ok=True)
    yield panel.page, folder
    page = panel.page
    page.evaluate("document.querySelectorAll('.jp-Notification-Toast-Close').forEach(one => one.click())")
    for name in (path.name for path in folder.iterdir()):
        tab = page.locator(".lm-TabBar-tab", has_text=name)
        if tab.count():
            tab.locator(".lm-TabBar-tabCloseIcon").click()
            discard = page.get_by_role("dialog").get_by_role("button", name="Discard")
            if page.get_by_role("dialog").count():
                discard.click()
    page.locator(".lm-TabBar-tab[data-id=ocman-panel]").click()


def open_document(page: Any, path: Path) -> Any:
    """The tab panel of a document, opened as people do."""
    page.get_by_role("tab", name="File Browser").click()
    browser = page.locator(".jp-FileBrowser").first
    if not browser.get_by_role("listitem", name=path.name).count():
        browser.locator(".jp-BreadCrumbs-home").first.click()
        browser.get_by_role("listitem").filter(has_text=path.parent.name).dblclick()
    browser.get_by_role("listitem").filter(has_text=path.name).dblclick()
    return page.get_by_role("tabpanel", name=path.name)


def done(lab: Lab, folder: Path) -> None:
    """An agent's turn in the folder ends."""
    lab.scene("tell", items=["session.status"], id="ses_unknown", directory=str(folder), status="idle", error=None)


def test_a_clean_document_is_read_again(work: Any, lab: Lab) -> None:
    page, folder = work
    path = folder / "clean.txt"
    path.write_text(TEXT)
    document = open_document(page, path)
    expect(document.get_by_text("first")).to_be_visible()
    path.write_text(TEXT.replace("first", "written by the agent"))
    done(lab, folder)
    expect(document.get_by_text("written by the agent")).to_be_visible()
    expect(document.get_by_role("region", name="This file on disk")).to_have_count(0)
    # Emptied is changed too.
    path.write_text("")
    done(lab, folder)
    expect(document.get_by_text("written by the agent")).to_have_count(0)


def test_a_dirty_document_is_kept_and_a_save_asks(work: Any, lab: Lab) -> None:
    page, folder = work
    path = folder / "dirty.txt"
    path.write_text(TEXT)
    document = open_document(page, path)
    document.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("mine ")
    path.write_text("theirs\n")
    done(lab, folder)
    notice = document.get_by_role("region", name="This file on disk")
    expect(notice).to_contain_text("The agent changed this file on disk. Saving would overwrite that.")
    expect(document.get_by_text("mine first")).to_be_visible()
    document.locator(".cm-content").click()
    page.keyboard.press("Control+s")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("has changed on disk")
    dialog.get_by_role("button", name="Cancel").click()
    assert path.read_text() == "theirs\n"
    button(notice, "Keep mine").click()
    expect(notice).to_have_count(0)
    path.write_text("theirs again\n")
    done(lab, folder)
    button(notice, "Reload from disk").click()
    expect(document.get_by_text("theirs again")).to_be_visible()
    expect(notice).to_have_count(0)


def test_a_notebook_is_read_again_and_its_kernel_runs_on(work: Any, lab: Lab) -> None:
    page, folder = work
    path = folder / "notebook.ipynb"

    def write(source: str) -> None:
        cell = {
            "cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [], "execution_count": None
        }  # fmt: skip
        spec = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
        # As agents write them: the kernel adds its language, which makes it dirty at once.
        notebook = {"cells": [cell], "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
        path.write_text(json.dumps(notebook))

    write("x = 1")
    document = open_document(page, path)
    expect(document.get_by_text("x = 1")).to_be_visible()
    kernel_ready(page)
    document.locator(".cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    expect(document.locator(".jp-InputPrompt", has_text="[1]:").first).to_be_visible(timeout=60_000)
    page.keyboard.press("Control+s")
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty", has_text=path.name)).to_have_count(0)
    write("print(x + 41)")
    done(lab, folder)
    cell = document.get_by_text("print(x + 41)")
    expect(cell).to_be_visible()
    cell.click()
    page.keyboard.press("Shift+Enter")
    expect(document.locator(".jp-OutputArea-output", has_text="42")).to_be_visible()


def test_a_worktree_that_goes_away_under_open_documents_is_told(work: Any, lab: Lab) -> None:
    page, folder = work
    path = folder / "left.txt"
    path.write_text("left\n")
    open_document(page, path)
    expect(page.get_by_role("tabpanel", name=path.name)).to_be_visible()
    lab.scene("tell", items=["worktree.removed"], path=str(folder), repo_root=str(lab.root))
    expect(toast(page, "The worktree worked is gone. Still open: left.txt")).to_be_visible()
