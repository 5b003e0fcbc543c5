"""How ocman joins JupyterLab: menus, keys, dialogs, tabs, notifications, the status bar, and the ways in."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.ui.conftest import Faults, Lab, button, choose, lose_much, new_page, row

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

ANALYSIS = "/data/lab/analysis"
FIX = "/data/lab/.worktrees/analysis/fix-loader"


@pytest.fixture
def work(lab: Lab, panel: Any) -> Any:
    """The panel on a working day."""
    lab.show(panel, "work")
    return panel


def tab(page: Any, name: str) -> Any:
    return page.get_by_role("main").get_by_role("tab", name=name, exact=True)


def toast(page: Any, text: str) -> Any:
    return page.locator(".Toastify__toast").filter(has_text=text)


def test_a_session_opens_in_one_tab_and_is_there_after_a_reload(work: Any, lab: Lab) -> None:
    page = work.page
    explore = row(work, "Session Explore data")
    explore.click()
    expect(tab(page, "Explore data")).to_have_count(1)
    expect(explore).to_have_attribute("aria-selected", "true")
    row(work, "Session Try polars instead of pandas").click()
    explore.focus()
    page.keyboard.press("Enter")
    expect(tab(page, "Explore data")).to_have_count(1)
    expect(explore).to_have_attribute("aria-selected", "true")
    page.wait_for_timeout(1500)  # the layout is saved a second after it changed
    page.goto(page.url.split("?")[0])
    expect(tab(page, "Explore data")).to_have_count(1)
    expect(tab(page, "Try polars instead of pandas")).to_have_count(1)


def test_the_menu_of_a_tab_is_about_its_session(work: Any, lab: Lab) -> None:
    page = work.page
    row(work, "Session Explore data").click()
    more = page.locator(".ocman-Session").get_by_role("button", name="More for this session")
    more.click()
    page.get_by_role("menuitem", name=re.compile("^Rename Session")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("textbox")).to_have_value("Explore data")
    dialog.get_by_role("textbox").fill("Look around")
    button(dialog, "Rename").click()
    expect(tab(page, "Look around")).to_have_count(1)
    assert lab.scene("called", name="rename") == [["ses_explore", "Look around"]]


def test_the_menu_of_a_row_by_mouse_and_by_keyboard(work: Any) -> None:
    page = work.page
    fix = row(work, "Worktree fix-loader")
    fix.hover()
    button(fix, "Actions for fix-loader").click()
    items = page.get_by_role("menuitem")
    expect(items.filter(has_text="Remove Worktree")).to_be_visible()
    expect(items.filter(has_text="Show Diff")).to_be_visible()
    expect(items.filter(has_text="What Is Wrong Here")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(fix).to_be_focused()
    row(work, "Worktree plots").focus()
    page.keyboard.press("Shift+F10")
    expect(items.filter(has_text="What Is Wrong Here")).to_be_visible()
    page.keyboard.press("Escape")
    expect(row(work, "Worktree plots")).to_be_focused()
    row(work, "Worktree main").focus()
    page.keyboard.press("Shift+F10")
    expect(items.filter(has_text="New Session in This Worktree")).to_be_visible()
    expect(items.filter(has_text="Remove Worktree")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".lm-Menu-item")).to_have_count(0)


def test_n_makes_something_new_here_but_not_in_the_middle_of_a_word(work: Any, lab: Lab) -> None:
    page = work.page
    row(work, "Repository shop").focus()
    page.keyboard.press("n")
    form = work.get_by_role("dialog", name="New worktree session")
    expect(form.get_by_label("Repository")).to_have_value(re.compile("shop$"))
    expect(form.get_by_label("Name or task")).to_be_focused()
    form.press("Escape")
    row(work, "Repository analysis").focus()
    page.keyboard.type("man")
    expect(form).to_have_count(0)
    page.wait_for_function("document.querySelector('.ocman-Tree[data-typing]') === null")
    row(work, "Worktree fix-loader").focus()
    page.keyboard.press("n")
    expect(row(work, "Session New session")).to_have_attribute("aria-selected", "true")
    [[request]] = lab.scene("called", name="create_session")
    assert request["directory"] == FIX


def test_f2_renames_and_delete_asks_first(work: Any, lab: Lab) -> None:
    page = work.page
    row(work, "Session Explore data").focus()
    page.keyboard.press("F2")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("Look around")
    button(dialog, "Rename").click()
    expect(row(work, "Session Look around")).to_be_visible()
    row(work, "Session Look around").focus()
    page.keyboard.press("Delete")
    expect(dialog).to_contain_text("This cannot be undone")
    expect(button(dialog, "Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(row(work, "Session Look around")).to_be_focused()
    page.keyboard.press("Delete")
    button(dialog, "Delete").click()
    expect(row(work, "Session Look around")).to_have_count(0)
    assert lab.scene("called", name="delete") == [["ses_explore"]]


def test_what_does_not_work_is_said_in_its_row_with_retry(work: Any, lab: Lab, lab_page: tuple[Any, Faults]) -> None:
    fix = row(work, "Worktree fix-loader")
    lab.scene("refuse", message="OpenCode is on holiday.")
    choose(fix, "New Session in This Worktree")
    expect(fix.get_by_role("alert")).to_contain_text("OpenCode is on holiday.")
    button(fix, "Retry").click()
    expect(row(work, "Session New session")).to_have_attribute("aria-selected", "true")
    expect(fix.get_by_role("alert")).to_have_count(0)
    lab_page[1].found.clear()  # the browser reports the refused request


def test_a_worktree_is_removed_only_after_every_loss_was_decided(work: Any, lab: Lab) -> None:
    page = work.page
    lose_much(lab)
    row(work, "Worktree fix-loader").focus()
    page.keyboard.press("Delete")
    dialog = page.get_by_role("dialog")
    remove = button(dialog, "Remove")
    expect(button(dialog, "Cancel")).to_be_focused()
    expect(dialog).to_contain_text("2 things would be lost")
    expect(dialog).to_contain_text("40 MB")
    expect(dialog.get_by_text("out/39.npy")).not_to_be_visible()
    dialog.get_by_text("35 more").click()
    expect(dialog.get_by_text("out/39.npy")).to_be_visible()
    expect(remove).to_be_disabled()
    changes = dialog.get_by_role("region", name="Changes that are not committed")
    # The keyboard goes round in the dialog, past what is disabled.
    first = changes.get_by_role("checkbox", name="Copy them to a folder first")
    for key in ("Tab", "Shift+Tab"):
        button(dialog, "Cancel").focus()
        for _ in range(20):
            page.keyboard.press(key)
            if first.evaluate("field => field === document.activeElement"):
                break
        expect(first).to_be_focused()
    changes.get_by_role("checkbox", name="Lose these changes").check()
    expect(remove).to_be_disabled()
    ignored = dialog.get_by_role("region", name="Files that git ignores")
    ignored.get_by_role("checkbox", name="Copy them to a folder first").check()
    folder = dialog.get_by_label("Copy 40 MB to this folder")
    expect(folder).to_have_value(re.compile(r"^/data/lab/\.worktrees-rescued/fix-loader-\d{4}-\d\d-\d\d$"))
    folder.fill("nowhere")
    expect(remove).to_be_disabled()
    saved = f"/data/{'deep/' * 20}saved"
    folder.fill(saved)
    folder.press("Enter")
    expect(dialog).to_be_visible()
    remove.click()
    expect(dialog).to_have_count(0)
    expect(row(work, "Worktree fix-loader")).to_have_count(0)
    # The whole path, for long enough to copy it, but not for ever over what is below.
    told = toast(page, f"40 files (40 MB) copied to {saved}")
    expect(told).to_be_visible()
    expect(told.locator(".Toastify__progress-bar")).to_have_css("animation-duration", "20s")
    expect(button(told, "Copy path")).to_have_attribute("title", saved)
    button(told, "Copy path").click()
    expect(told).to_have_count(0)
    [[request]] = lab.scene("called", name="remove")
    assert (request["accept"], request["rescue"], request["rescue_to"]) == (["uncommitted"], ["ignored"], saved)


def test_what_is_done_with_rescued_files_stays_in_sight_below_many_reasons(work: Any, lab: Lab) -> None:
    page = work.page
    files = [{"path": f"out/{i}.npy", "bytes": 1_000_000} for i in range(6)]
    lab.scene("lose", items=[
        {"code": code, "message": "6 files.", "items": files, "total_bytes": 6_000_000}
        for code in ("uncommitted", "untracked", "ignored")
    ])  # fmt: skip
    row(work, "Worktree fix-loader").focus()
    page.keyboard.press("Delete")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 things would be lost")
    for rescue in dialog.get_by_role("checkbox", name="Copy them to a folder first").all():
        rescue.check()
    expect(button(dialog, "Remove")).to_be_enabled()
    for scrolled in ("0", "list.scrollHeight"):
        dialog.locator(".ocman-Removal-reasons").evaluate(f"list => {{ list.scrollTop = {scrolled}; }}")
        expect(dialog.get_by_label("Copy 18 MB to this folder")).to_be_in_viewport(ratio=1)
        expect(dialog.get_by_role("checkbox", name="Delete the branch too: fix-loader")).to_be_in_viewport(ratio=1)
    height = dialog.locator(".jp-Dialog-content").evaluate("content => content.offsetHeight / window.innerHeight")
    assert 0.7 < height <= 0.8
    button(dialog, "Cancel").click()


def test_what_came_up_meanwhile_is_shown_and_wants_a_decision(
    work: Any, lab: Lab, lab_page: tuple[Any, Faults]
) -> None:
    page = work.page
    choose(row(work, "Worktree try-polars"), "Remove Worktree…")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Nothing would be lost")
    lab.scene("lose", items=[{"code": "busy_session", "message": "'Polars' is busy."}])
    button(dialog, "Remove").click()
    busy = dialog.get_by_role("region", name="A session is at work in it")
    expect(busy).to_contain_text("new")
    expect(button(dialog, "Remove")).to_be_disabled()
    busy.get_by_role("checkbox").check()
    dialog.get_by_role("checkbox", name="Delete the branch too: try-polars").check()
    expect(button(dialog, "Remove")).to_be_enabled()
    button(dialog, "Remove").click()
    expect(row(work, "Worktree try-polars")).to_have_count(0)
    expect(toast(page, "Removed worktree and branch try-polars.")).to_be_visible()
    lab_page[1].found.clear()  # the browser reports the refused request


def test_opencode_is_not_stopped_under_a_busy_session_unasked(
    work: Any, lab: Lab, lab_page: tuple[Any, Faults]
) -> None:
    choose(row(work, "Repository analysis"), "Stop OpenCode")
    dialog = work.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Write tests for the loader")
    button(dialog, "Stop").click()
    expect(row(work, "Repository analysis, stopped")).to_be_visible()
    assert [force for _, force in lab.scene("called", name="stop")] == [False, True]
    lab_page[1].found.clear()  # the browser reports the refused request


def test_a_locked_worktree_says_how_to_unlock_it(work: Any) -> None:
    choose(row(work, "Worktree plots"), "What Is Wrong Here…")
    dialog = work.page.get_by_role("dialog")
    expect(dialog).to_contain_text("long run on the cluster")
    expect(dialog).to_contain_text("worktree unlock /data/lab/.worktrees/analysis/plots")
    button(dialog, "Close").click()


def test_a_missing_worktree_is_made_again(work: Any, lab: Lab) -> None:
    choose(row(work, "Worktree old-idea"), "Make Again")
    expect(row(work, "Worktree old-idea")).to_be_visible()
    [[request]] = lab.scene("called", name="create_worktree")
    assert request["branch"] == "old-idea"
    expect(tab(work.page, "old-idea")).to_have_count(1)


def focus_again(page: Any, is_so: str) -> None:
    """Come back to the page until ``is_so`` (JavaScript): a return soon after another counts for nothing."""
    page.wait_for_function(f"() => {{ window.dispatchEvent(new Event('focus')); return {is_so}; }}", polling=500)


def test_a_worktree_that_was_removed_in_a_shell_is_made_again_for_its_session(work: Any, lab: Lab) -> None:
    page = work.page
    row(work, "Session Try polars instead of pandas").click()
    session = page.locator(".ocman-Session")
    expect(session.get_by_label("Message to try-polars")).to_be_visible()
    lab.scene("vanish", repository=ANALYSIS, name="try-polars")
    focus_again(page, "document.querySelector('.ocman-Session [aria-label=\\'The folder is gone\\']') !== null")
    expect(row(work, "Worktree try-polars")).to_have_count(0)
    button(session, "Recreate").click()
    form = work.get_by_role("dialog", name="Make the worktree again")
    expect(form.get_by_role("heading", name="Make the worktree again")).to_be_visible()
    expect(form).to_contain_text("Try polars instead of pandas")
    expect(form).to_contain_text("The session goes on when its worktree is there again.")
    form.get_by_label("Name or task").fill("another")
    expect(form).to_contain_text("this makes another worktree, with a new session")
    expect(button(form, "Create")).to_be_visible()
    form.get_by_label("Name or task").fill("try-polars")
    expect(button(form, "Make again")).to_be_visible()
    expect(form.get_by_label("Repository")).to_have_value(re.compile("analysis$"))
    expect(form.get_by_label("Name or task")).to_have_value("try-polars")
    expect(form).to_contain_text("/data/lab/.worktrees/analysis/try-polars")
    form.get_by_label("Name or task").press("Enter")
    expect(form).to_have_count(0)
    expect(row(work, "Worktree try-polars")).to_be_visible()
    # The session that was there goes on, and there is no other.
    expect(session.get_by_role("region", name="The folder is gone")).to_have_count(0)
    expect(session.get_by_label("Message to try-polars")).to_be_visible()
    [[request]] = lab.scene("called", name="create_worktree")
    assert (request["branch"], request["session"]) == ("try-polars", "none")
    expect(work.get_by_role("treeitem", name=re.compile("^Session .*polars"))).to_have_count(1)


def test_a_second_session_of_a_name_is_offered_to_be_opened(work: Any, lab: Lab) -> None:
    form = work.get_by_role("dialog", name="New worktree session")
    for _ in range(2):
        button(work, "New worktree session").click()
        form.get_by_label("Name or task").fill("Make it stream")
        expect(form).to_contain_text("make-it-stream")
        if button(form, "Open it").count():
            break
        expect(form).not_to_contain_text("There is a session of this name")
        form.get_by_label("Name or task").press("Enter")
        expect(row(work, "Session Make it stream")).to_have_attribute("aria-selected", "true")
        work.page.locator(".lm-mod-current .lm-TabBar-tabCloseIcon").last.click()
    button(form, "Open it").click()
    expect(form).to_have_count(0)
    expect(row(work, "Session Make it stream")).to_have_attribute("aria-selected", "true")
    assert len(lab.scene("called", name="create_worktree")) == 1


def test_a_tab_comes_to_life_with_opencode(work: Any, lab: Lab, lab_page: tuple[Any, Faults]) -> None:
    page = work.page
    lab.scene("say", session_id="ses_explore", text="It is all there.", directory=ANALYSIS)
    lab.scene("kill", repository=ANALYSIS)
    row(work, "Session Explore data").click()
    session = page.locator(".ocman-Session")
    expect(session.get_by_role("region", name="No OpenCode runs")).to_be_visible()
    choose(row(work, "Repository analysis"), "Start OpenCode")
    expect(session).to_contain_text("It is all there.")
    expect(session.get_by_role("region", name="No OpenCode runs")).to_have_count(0)
    lab_page[1].found.clear()  # the browser reports the refused request


def test_a_link_to_a_line_opens_there(work: Any, lab: Lab) -> None:
    page = work.page
    (lab.root / "long.py").write_text("".join(f"x{number} = {number}\n" for number in range(1, 400)))
    text = "See [it](long.py:300), or [run](javascript:alert(1))."
    lab.scene("say", session_id="ses_explore", text=text, directory=str(lab.root))
    row(work, "Other folders").click()
    row(work, "Session Explore data").click()
    page.locator(".ocman-Session").get_by_role("link", name="it").click()
    editor = page.locator(".jp-FileEditor")
    expect(editor.get_by_text("x300 = 300")).to_be_in_viewport()
    expect(page.get_by_role("contentinfo").get_by_text("Ln 300, Col 1")).to_be_visible()
    page.locator(".lm-TabBar-tab[data-type=document-title], .lm-TabBar-tab", has_text="long.py").locator(
        ".lm-TabBar-tabCloseIcon"
    ).click()


def test_a_link_to_a_file_that_jupyter_does_not_show_says_what_to_do(work: Any, lab: Lab) -> None:
    page = work.page
    lab.scene("say", session_id="ses_explore", text="See [it](load.py:3).", directory=FIX)
    row(work, "Session Explore data").click()
    page.locator(".ocman-Session").get_by_role("link", name="it").click()
    told = toast(page, "Jupyter cannot open load.py. Start it in a folder above this file, with "
                       "ContentsManager.allow_hidden = True.")  # fmt: skip
    expect(told).to_be_visible()
    expect(button(told, "Copy path")).to_have_attribute("title", f"{FIX}/load.py")
    button(told, "Copy path").click()


def test_the_keys_of_a_session_tab(work: Any, lab: Lab) -> None:
    page = work.page
    lab.scene("say", session_id="ses_fix", text="I look.", directory=FIX)
    row(work, "Session Fix the loader").click()
    session = page.locator(".ocman-Session")
    text = session.get_by_label("Message to fix-loader")
    expect(text).to_be_focused()
    page.keyboard.type("jke")
    page.keyboard.press("Escape")
    entry = session.locator("[data-ocman-entry]").last
    expect(entry).to_be_focused()
    page.keyboard.press("Escape")
    expect(text).to_be_focused()
    expect(text).to_have_value("jke")
    # What is open closes first.
    text.fill("")
    page.keyboard.type("/")
    expect(session.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("Escape")
    expect(session.get_by_role("listbox")).to_have_count(0)
    expect(text).to_be_focused()
    text.fill("jke")
    session.get_by_role("button", name=re.compile("^Reject with reason")).click()
    reason = session.locator(".ocman-Dock-reason input")
    expect(reason).to_be_focused()
    page.keyboard.press("Escape")
    expect(reason).to_have_count(0)
    expect(entry).not_to_be_focused()
    text.focus()
    once = session.locator(".ocman-Dock [data-reply=once]")
    expect(once).to_have_attribute("aria-disabled", "false")
    page.keyboard.press("Alt+1")
    expect(session.locator(".ocman-Dock")).to_contain_text("Allowed once")
    assert [(ask, body["reply"]) for ask, body in lab.scene("called", name="reply")] == [("per_1", "once")]
    page.keyboard.press("Control+Enter")
    expect(text).to_have_value("")
    assert [request["text"] for _, request in lab.scene("called", name="prompt")] == ["jke"]


def test_a_key_that_is_held_down_allows_nothing_more(work: Any, lab: Lab) -> None:
    page = work.page
    lab.scene("ask", name="per_2", session_id="ses_explore", title="Explore data")
    first, second = (work.locator(f"[data-ask={name}]") for name in ("per_1", "per_2"))
    for ask in (first, second):
        expect(ask.locator("[data-reply=once]")).to_have_attribute("aria-disabled", "false")
    first.locator(".ocman-Ask-head").focus()
    page.keyboard.down("a")
    expect(first).to_contain_text("Allowed once")
    second.locator(".ocman-Ask-head").focus()
    expect(second.locator("[data-reply=once]")).to_have_attribute("aria-disabled", "false")
    page.keyboard.down("a")  # again without a release: the key repeats
    page.keyboard.up("a")
    assert [ask for ask, _ in lab.scene("called", name="reply")] == ["per_1"]
    # The one that was answered goes, which moves this one: it has to settle.
    expect(first).to_have_count(0)
    second.locator(".ocman-Ask-head").focus()
    expect(second.locator("[data-reply=once]")).to_have_attribute("aria-disabled", "false")
    page.keyboard.press("a")
    expect(second).to_contain_text("Allowed once")


def test_what_was_written_last_is_there_after_a_reload(browser: Any, lab: Lab) -> None:
    page, faults = new_page(browser, lab, "lab?reset")
    try:
        panel = page.locator(".ocman-Panel")
        page.locator(".jp-SideBar [data-id='ocman-panel']").click()
        lab.show(panel, "work")
        row(panel, "Session Explore data").click()
        text = page.locator(".ocman-Session").get_by_label("Message to main")
        text.fill("old words")
        page.wait_for_timeout(2500)  # the application saves a while after it was told
        text.fill("the last words")
        page.goto(page.url.split("?")[0])
        expect(text).to_have_value("the last words")
        faults.none()
    finally:
        page.context.close()


def test_asks_are_answered_by_keys_and_the_focus_goes_on(work: Any, lab: Lab) -> None:
    page = work.page
    ask = work.locator("[data-ask=per_1]")
    expect(ask.locator("[data-reply=once]")).to_have_attribute("aria-disabled", "false")
    ask.locator(".ocman-Ask-head").focus()
    page.keyboard.press("a")
    expect(ask).to_contain_text("Allowed once")
    replies = [(ask_id, body["reply"]) for ask_id, body in lab.scene("called", name="reply")]
    assert replies == [("per_1", "once")]
    expect(ask).to_have_count(0)
    page.wait_for_function("document.activeElement.closest('.ocman-Needs, .ocman-Tree') !== null")


def test_the_status_bar_counts_and_opens_the_panel(work: Any, lab: Lab) -> None:
    item = button(work.page, "ocman: 2 need you, 1 busy. Show the panel")
    expect(item).to_contain_text("2 need you · 1 busy")
    lab.show(work, "quiet")
    expect(work.page.locator(".ocman-StatusItem-button")).not_to_be_visible()


def test_a_session_that_nobody_looks_at_tells_and_takes_it_back(work: Any, lab: Lab) -> None:
    page = work.page
    side = page.locator(".jp-SideBar [data-id='ocman-panel']")
    # The panel shows the asks itself.
    expect(toast(page, "needs you")).to_have_count(0)
    lab.scene("update", session_id="ses_tests", status="idle")
    finished = toast(page, "fix-loader / Write tests for the loader has finished.")
    expect(finished).to_be_visible()
    button(finished, "Open").click()
    expect(tab(page, "Write tests for the loader")).to_have_count(1)
    side.click()
    expect(work).to_be_hidden()
    lab.scene("ask", name="per_unseen", session_id="ses_explore", title="Explore data")
    asks = toast(page, "main / Explore data needs you")
    expect(asks).to_be_visible()
    lab.scene("resolve", ask_id="per_unseen", answer="once")
    expect(asks).to_have_count(0)
    side.click()
    expect(work).to_be_visible()


def test_the_ways_in(work: Any) -> None:
    page = work.page
    page.get_by_role("menuitem", name="File", exact=True).click()
    page.locator(".lm-Menu-item[data-type=submenu]", has_text=re.compile("^New$")).hover()
    page.get_by_role("menuitem", name="New Worktree Session…").click()
    form = work.get_by_role("dialog", name="New worktree session")
    expect(form).to_be_visible()
    button(form, "Cancel").click()
    page.locator(".jp-LauncherCard", has_text="Worktree Session").click()
    expect(form).to_be_visible()
    button(form, "Cancel").click()
    page.locator(".jp-SideBar [data-id='filebrowser']").click()
    page.locator(".jp-DirListing-item", has_text="notes").click(button="right")
    page.get_by_role("menuitem", name="New Worktree Session Here").click()
    expect(form.get_by_label("Folder of a repository")).to_have_value(re.compile("/root/notes$"))
    button(form, "Cancel").click()
