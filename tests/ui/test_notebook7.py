"""Notebook 7 has no side bars of JupyterLab: the panel is there all the same, and nothing breaks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.conftest import Lab, new_page

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("notebook")
expect = playwright.expect

NOTEBOOKS_OWN = "error: Cannot read properties of undefined (reading 'schema')"
"""Notebook 7.6 says this on every page, with this extension and without it."""


def test_the_panel_opens_in_notebook_7_and_the_page_has_no_errors(browser: Any, lab: Lab) -> None:
    lab.scene("set", name="work")
    page, faults = new_page(browser, lab, "tree")
    try:
        page.get_by_role("menuitem", name="View").click()
        page.get_by_role("menuitem", name="Show ocman Panel").click()
        panel = page.locator(".ocman-Panel")
        expect(panel.get_by_role("treeitem", name="Session Fix the loader, needs you")).to_be_visible()
        lab.scene("update", session_id="ses_explore", status="busy")
        expect(panel.get_by_role("treeitem", name="Session Explore data, busy")).to_be_visible()
        # The main area is the document's: a session stands beside it, one at a time.
        for title in ("Explore data", "Try polars instead of pandas"):
            panel.get_by_role("treeitem", name=f"Session {title}").click()
            expect(page.locator(".ocman-Session").get_by_role("heading", name=title)).to_be_visible()
            expect(page.locator(".ocman-Session")).to_have_count(1)
        page.get_by_role("button", name="More for this session").click()
        page.get_by_role("menuitem", name="Rename Session").click()
        expect(page.get_by_role("dialog").get_by_role("textbox")).to_have_value("Try polars instead of pandas")
        page.keyboard.press("Escape")
        faults.found = [fault for fault in faults.found if fault != NOTEBOOKS_OWN]
        faults.none()
    finally:
        page.context.close()
