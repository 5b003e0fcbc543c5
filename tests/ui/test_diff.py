"""The diff tab: files, lines, cells, what was viewed, and what cannot be shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.conftest import Faults, Lab, button, choose, row
from tests.ui.scene import ANALYSIS, worktree

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

LOADER = {
    "path": "src/loader.py",
    "patch": (
        "diff --git a/src/loader.py b/src/loader.py\n--- a/src/loader.py\n+++ b/src/loader.py\n"
        "@@ -8,3 +8,3 @@ def load(path):\n     rows = []\n-    return rows[:10]\n+    return rows[:20]\n end\n"
        "@@ -40 +40,2 @@\n-old\n+new <script>window.hacked = 1</script>\n+\u202egnp.exe\n"
    ),
    "additions": 3,
    "deletions": 2,
}  # fmt: skip
NOTEBOOK = {
    "path": "plots.ipynb", "notebook": True, "patch": "@@ -1 +1 @@\n-raw\n+text\n",
    "notebook_diff": [
        {
            "kind": "modified", "cell_type": "code", "index": 4, "source_patch": "@@ -1 +1 @@\n-x = 1\n+x = 2\n",
            "outputs_changed": True, "metadata_changed": False,
        }
    ],
}  # fmt: skip
IMAGE = {"path": "figures/a.png", "binary": True, "additions": None, "deletions": None, "status": "untracked"}
HUGE = {"path": "data.csv", "additions": 900_000, "deletions": 0, "status": "added"}


def long_file(lines: int) -> dict[str, Any]:
    patch = f"@@ -0,0 +1,{lines} @@\n" + "".join(f"+line {i}\n" for i in range(lines))
    return {"path": "long.txt", "patch": patch, "additions": lines, "deletions": 0, "status": "added"}


def file(tab: Any, name: str) -> Any:
    return tab.get_by_role("region", name=name)


@pytest.fixture
def open_diff(lab: Lab, panel: Any) -> Any:
    """Shows the diff of a worktree that differs in the given files, in a tab that closes afterwards."""
    lab.show(panel, "work")

    def shown(*files: dict[str, Any], **more: Any) -> Any:
        lab.scene("differ", items=files, **more)
        choose(row(panel, "Worktree fix-loader"), "Show Diff")
        return panel.page.get_by_role("tabpanel", name="Diff fix-loader")

    yield shown
    panel.page.locator(".lm-TabBar-tab", has_text="Diff ").locator(".lm-TabBar-tabCloseIcon").click()


def changed(lab: Lab, **facts: Any) -> None:
    """The worktree is told to have changed."""
    tree = worktree(ANALYSIS, "fix-loader", **facts)
    lab.scene("tell", items=["worktree.changed"], **tree.model_dump(mode="json"), repo_root=ANALYSIS)


def test_lines_are_numbered_signed_and_inert(open_diff: Any) -> None:
    tab = open_diff(LOADER, NOTEBOOK, IMAGE, HUGE)
    expect(tab.get_by_role("heading", name="fix-loader against main (a1b2c3d)")).to_be_visible()
    loader = file(tab, "src/loader.py, modified, 3 lines added, 2 removed")
    table = loader.get_by_role("table", name="Lines of src/loader.py")
    expect(table.get_by_role("row", name="9 removed return rows[:10]")).to_be_visible()
    added = table.get_by_role("row", name="9 added return rows[:20]")
    expect(added.locator("mark")).to_have_text("20")
    expect(table.get_by_role("rowheader", name="Line 8 def load(path):")).to_be_visible()
    # What an agent wrote is text, and what turns text round is told.
    expect(table.get_by_text("<script>window.hacked = 1</script>")).to_be_visible()
    expect(table.get_by_text("\\u202egnp.exe")).to_be_visible()
    assert tab.page.evaluate("window.hacked") is None
    button(tab, "Side by side").click()
    both = table.get_by_role("row", name="9 removed return rows[:10] 9 added return rows[:20]")
    expect(both).to_be_visible()
    button(tab, "Unified").click()


def test_a_notebook_is_told_by_its_cells(open_diff: Any) -> None:
    tab = open_diff(NOTEBOOK)
    notebook = file(tab, "plots.ipynb")
    expect(notebook.get_by_text("4 unchanged cells")).to_be_visible()
    cell = notebook.get_by_role("listitem").filter(has_text="Code cell 5, modified")
    expect(cell.get_by_text("outputs changed")).to_be_visible()
    expect(cell.get_by_role("row", name="1 added x = 2")).to_be_visible()
    button(notebook, "Show the file’s text").click()
    expect(notebook.get_by_role("row", name="1 removed raw")).to_be_visible()


def test_what_is_not_shown_says_why(open_diff: Any) -> None:
    tab = open_diff(IMAGE, HUGE, truncated=True)
    expect(file(tab, "figures/a.png, untracked, binary").get_by_text("A binary file")).to_be_visible()
    huge = file(tab, "data.csv")
    button(huge, "data.csv").click()
    expect(huge.get_by_text("Too large to be shown here.")).to_be_visible()
    expect(tab.get_by_text("not all of it is shown")).to_be_visible()


def test_a_long_file_is_closed_at_first_and_drawn_in_parts(open_diff: Any) -> None:
    tab = open_diff(long_file(6_000))
    button(tab, "long.txt").click()
    rows = tab.locator(".ocman-Line")
    expect(rows).to_have_count(1_000)
    button(tab, "Show more (5000 lines left)").click()
    expect(rows).to_have_count(3_000)


def test_from_file_to_file_and_hunk_to_hunk_by_keyboard(open_diff: Any) -> None:
    tab = open_diff(LOADER, NOTEBOOK, {**LOADER, "path": "src/other.py"})
    page = tab.page
    first, second = (button(file(tab, name), name) for name in ("src/loader.py", "src/other.py"))
    first.focus()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("k")
    expect(first).to_be_focused()
    focused = page.locator("*:focus")
    page.keyboard.press("n")
    expect(focused).to_contain_text("Line 8")
    page.keyboard.press("n")
    expect(focused).to_contain_text("Line 40")
    page.keyboard.press("p")
    expect(focused).to_contain_text("Line 8")
    # Letters in a field are letters.
    tab.get_by_label("Filter files").press_sequentially("jn")
    expect(tab.get_by_label("Filter files")).to_have_value("jn")
    expect(tab.get_by_text("3 hidden")).to_be_visible()
    button(tab, "Show all").click()


def test_a_viewed_file_closes_and_opens_when_it_changes(open_diff: Any, lab: Lab) -> None:
    tab = open_diff(LOADER, IMAGE)
    loader = file(tab, "src/loader.py")
    loader.get_by_role("checkbox", name="Viewed src/loader.py").check()
    expect(button(loader, "src/loader.py")).to_have_attribute("aria-expanded", "false")
    changed(lab)
    tab.page.wait_for_timeout(800)
    expect(loader.get_by_role("checkbox")).to_be_checked()
    lab.scene("differ", items=[{**LOADER, "patch": "@@ -1 +1 @@\n-a\n+later\n"}, IMAGE])
    changed(lab)
    expect(loader.get_by_role("row", name="1 added later")).to_be_visible()
    expect(loader.get_by_role("checkbox")).not_to_be_checked()


def test_compared_with_something_else(open_diff: Any, lab: Lab) -> None:
    tab = open_diff(LOADER)
    choice = tab.get_by_label("Compare with", exact=True)
    choice.select_option(label="Last commit: uncommitted changes only")
    expect(tab.get_by_role("heading", name="fix-loader against the last commit")).to_be_visible()
    choice.select_option(label="plots")
    expect(tab.get_by_role("heading", name="fix-loader against plots")).to_be_visible()
    choice.select_option(label="Another branch or commit…")
    tab.get_by_label("Branch, tag or commit to compare with").fill("v1.0")
    tab.page.keyboard.press("Enter")
    expect(choice).to_have_value("v1.0")


def test_nothing_differs_an_error_and_a_worktree_that_is_gone(
    open_diff: Any, lab: Lab, lab_page: tuple[Any, Faults]
) -> None:
    tab = open_diff()
    expect(tab.get_by_text("Nothing differs from main.")).to_be_visible()
    lab.scene("differ", items=[LOADER])
    changed(lab)
    expect(file(tab, "src/loader.py")).to_be_visible()
    lab.scene("refuse_to_differ")
    button(tab, "Refresh").click()
    expect(tab.get_by_text("Its base is nowhere.")).to_be_visible()
    # The browser tells of the refused request by itself.
    faults = lab_page[1]
    faults.found = [one for one in faults.found if "404" not in one]
    expect(file(tab, "src/loader.py")).to_be_visible()
    lab.scene("differ")
    button(tab, "Retry").click()
    expect(tab.get_by_text("Nothing differs from main.")).to_be_visible()
    lab.scene("tell", items=["worktree.removed"], path="/data/lab/.worktrees/analysis/fix-loader", repo_root=ANALYSIS)
    expect(tab.get_by_text("This worktree is gone.")).to_be_visible()
