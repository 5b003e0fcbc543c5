"""The side panel in JupyterLab: what people see, and what their clicks and keys do."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.ui.conftest import Faults, Lab, button, row

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

ANALYSIS = "/data/lab/analysis"


@pytest.fixture
def work(lab: Lab, panel: Any) -> Any:
    """The panel on a working day."""
    lab.show(panel, "work")
    return panel


def test_worktrees_and_sessions_stand_in_the_tree_with_their_states(work: Any) -> None:
    assert work.get_attribute("role") == "region" and work.get_attribute("aria-label") == "ocman sessions"
    tree = work.get_by_role("tree", name="Projects, worktrees and sessions")
    for name in (
        "Repository analysis, running, 5 worktrees, 1 busy, 2 need you",
        "Worktree main, main checkout, 2 changed files, 1 ahead, 1 session",
        "Worktree fix-loader, 5 changed files, 2 ahead, 1 behind, 2 sessions, needs you",
        "Worktree old-idea, missing, 1 session, folder gone",
        "Worktree plots, locked, 1 session, needs you",
        "Worktree try-polars, merged, 1 session, failed",
        "Session Write tests for the loader, busy, now",
        "Session Explore data, idle, 2 h",
        "Repository shop, stopped, 2 worktrees",
    ):
        expect(tree.get_by_role("treeitem", name=name, exact=True)).to_be_visible()
    levels = [row(work, name).get_attribute("aria-level") for name in
              ("Repository analysis", "Worktree fix-loader", "Session Fix the loader")]  # fmt: skip
    assert levels == ["1", "2", "3"]
    heights = tree.get_by_role("treeitem").evaluate_all("rows => rows.map(row => row.offsetHeight)")
    assert set(heights) == {24}
    expect(work.get_by_text("live", exact=True)).to_be_visible()
    badge = work.page.locator(".jp-SideBar [data-id='ocman-panel']")
    expect(badge).to_have_attribute("data-ocman-count", "2")
    expect(badge).to_have_accessible_name("ocman, 2 sessions need you")


def test_the_icon_counts_sessions_and_not_their_asks(lab: Lab, work: Any) -> None:
    badge = work.page.locator(".jp-SideBar [data-id='ocman-panel']")
    lab.scene("ask", name="per_2", session_id="ses_fix")
    expect(work.get_by_role("list", name="Needs your answer").get_by_role("listitem")).to_have_count(3)
    expect(badge).to_have_attribute("data-ocman-count", "2")
    lab.scene("ask", name="per_3", session_id="ses_explore", title="Explore data")
    expect(badge).to_have_attribute("data-ocman-count", "3")
    expect(badge).to_have_accessible_name("ocman, 3 sessions need you")


def test_a_status_that_changes_is_seen_without_any_request(lab: Lab, work: Any) -> None:
    work.page.wait_for_load_state("networkidle")
    requests: list[str] = []

    def note(request: Any) -> None:
        if "/api/ocman/" in request.url:
            requests.append(request.url)

    work.page.on("request", note)
    started = time.monotonic()
    lab.scene("update", session_id="ses_explore", status="busy")
    expect(row(work, "Session Explore data, busy")).to_be_visible()
    assert time.monotonic() - started < 2
    lab.scene("update", session_id="ses_explore", title="Look at the data", status="idle")
    expect(row(work, "Session Look at the data, idle")).to_be_visible()
    lab.scene("change", repository=ANALYSIS, name="plots", ahead=7)
    expect(row(work, "Worktree plots, 7 ahead")).to_be_visible()
    work.page.remove_listener("request", note)
    assert requests == []


def test_an_ask_is_allowed_once_and_the_row_says_so(lab: Lab, work: Any) -> None:
    asks = work.get_by_role("list", name="Needs your answer")
    expect(asks.get_by_role("listitem")).to_have_count(2)
    ask = asks.locator("[data-ask=per_1]")
    expect(ask).to_contain_text("outside the worktree: /etc/hosts")
    expect(ask).to_contain_text("Always would allow /etc/*")
    button(ask, "Allow once, fix-loader, /etc/hosts").click()
    expect(ask).to_contain_text("Allowed once")
    expect(row(work, "Session Fix the loader, busy")).to_be_visible()
    replies = [(ask_id, body["reply"]) for ask_id, body in lab.scene("called", name="reply")]
    assert replies == [("per_1", "once")]
    expect(ask).to_have_count(0)


def test_always_says_what_it_allows_and_reject_needs_no_settling(lab: Lab, work: Any) -> None:
    lab.scene("ask", name="per_2", session_id="ses_explore", title="Explore data")
    button(work.locator("[data-ask=per_2]"), "Reject, main, /etc/hosts").click()
    expect(work.locator("[data-ask=per_2]")).to_contain_text("Rejected")
    button(work, "Allow always /etc/*, fix-loader").click()
    expect(work.locator("[data-ask=per_1]")).to_contain_text("Allowed always")
    replies = [(ask_id, body["reply"]) for ask_id, body in lab.scene("called", name="reply")]
    assert replies == [("per_2", "reject"), ("per_1", "always")]


def test_a_click_in_flight_allows_nothing(lab: Lab, work: Any) -> None:
    """As soon as a new ask is drawn the page clicks on it, long before anybody could have read it."""
    work.page.evaluate(
        """() => {
          window.clicked = 0;
          const seen = new MutationObserver(() => {
            const once = document.querySelector('[data-ask=per_2] button.ocman-mod-accept');
            if (once && !window.clicked) { window.clicked = 1; once.click(); seen.disconnect(); }
          });
          seen.observe(document.querySelector('.ocman-Panel'), {subtree: true, childList: true});
        }"""
    )
    lab.scene("ask", name="per_2", session_id="ses_explore", title="Explore data")
    ask = work.locator("[data-ask=per_2]")
    once = button(ask, "Allow once, main, /etc/hosts")
    expect(once).to_have_attribute("aria-disabled", "false")
    assert work.page.evaluate("window.clicked") == 1
    assert lab.scene("called", name="reply") == []
    once.click()
    expect(ask).to_contain_text("Allowed once")


def test_an_ask_answered_elsewhere_says_so(lab: Lab, work: Any, lab_page: tuple[Any, Faults]) -> None:
    ask = work.locator("[data-ask=per_1]")
    lab.scene("resolve", ask_id="per_1", answer="reject")
    expect(ask).to_contain_text("Answered elsewhere: rejected")
    expect(button(ask, "Allow once, fix-loader, /etc/hosts")).to_have_count(0)
    lab.scene("ask", name="per_2", session_id="ses_fix")
    late = work.locator("[data-ask=per_2]")
    once = button(late, "Allow once, fix-loader, /etc/hosts")
    expect(once).to_have_attribute("aria-disabled", "false")
    lab.scene("take_away", ask_id="per_2")
    once.click()
    expect(late).to_contain_text("Answered elsewhere")
    lab_page[1].found.clear()  # the browser reports the refused request


def test_a_question_is_answered_in_place(lab: Lab, work: Any) -> None:
    ask = work.locator("[data-ask=que_1]")
    expect(button(ask, "Answer, plots")).to_have_attribute("aria-disabled", "true")
    ask.get_by_role("radio", name="price").check()
    button(ask, "Answer, plots").click()
    expect(ask).to_contain_text("Answered")
    assert lab.scene("called", name="reply")[0][1]["answers"] == [["price"]]


def test_a_new_worktree_session_shows_its_plan_and_then_its_row(lab: Lab, work: Any) -> None:
    button(work, "New worktree session").click()
    form = work.get_by_role("dialog", name="New worktree session")
    name = form.get_by_label("Name or task")
    expect(name).to_be_focused()
    name.fill("Make it stream")
    expect(form).to_contain_text("/data/lab/.worktrees/analysis/make-it-stream")
    expect(form).to_contain_text("origin/main (a1b2c3d, 2 d old)")
    form.get_by_label("First prompt (optional)").fill("please do")
    name.press("Enter")
    expect(form).to_have_count(0)
    expect(row(work, "Worktree make-it-stream")).to_be_visible()
    expect(row(work, "Session Make it stream")).to_have_attribute("aria-selected", "true")
    [[request]] = lab.scene("called", name="create_worktree")
    assert (request["directory"], request["branch"], request["title"], request["prompt"]) == (
        ANALYSIS, "make-it-stream", "Make it stream", "please do",
    )  # fmt: skip
    assert request["request_id"]


def test_what_cannot_be_made_says_why_where_it_stands(
    lab: Lab, panel: Any, lab_page: tuple[Any, Faults]
) -> None:
    lab.show(panel, "quiet")
    button(panel, "New worktree session").first.click()
    form = panel.get_by_role("dialog", name="New worktree session")
    name = form.get_by_label("Name or task")
    name.fill("a..b")
    expect(form.get_by_role("alert")).to_contain_text("'a..b' is not a valid branch name. Use letters")
    expect(button(form, "Create")).to_have_attribute("aria-disabled", "true")
    name.fill("conflict")
    expect(form).to_contain_text("/data/lab/.worktrees/analysis/conflict")
    button(form, "Create").click()
    failed = row(panel, "New worktree session conflict, failed")
    expect(failed).to_contain_text("git cannot hold both")
    button(failed, "Dismiss").click()
    expect(failed).to_have_count(0)
    lab_page[1].found.clear()  # the browser reports each refused request


def choose(row: Any, item: str) -> None:
    """Choose from the menu of a row."""
    row.click(button="right")
    row.page.get_by_role("menuitem", name=item, exact=True).click()


def test_the_details_of_a_session_and_its_abort(lab: Lab, work: Any) -> None:
    choose(row(work, "Session Write tests for the loader"), "Show Details")
    details = work.get_by_role("region", name="Session Write tests for the loader")
    expect(details).to_contain_text("/data/lab/.worktrees/analysis/fix-loader")
    expect(details).to_contain_text("ses_tests")
    button(details, "Abort Write tests for the loader").click()
    expect(row(work, "Session Write tests for the loader, idle")).to_be_visible()
    assert lab.scene("called", name="abort") == [["ses_tests"]]
    details.press("Escape")
    expect(details).to_have_count(0)


def test_arrows_home_end_enter_and_letters_move_through_the_tree(work: Any) -> None:
    page = work.page
    main = row(work, "Repository analysis")
    work.get_by_label("Filter worktrees and sessions").focus()
    page.keyboard.press("End")
    main.focus()
    page.keyboard.press("ArrowDown")
    expect(row(work, "Worktree main")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(row(work, "Worktree main")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(row(work, "Worktree main")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowRight")
    expect(row(work, "Session Explore data")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row(work, "Session Explore data")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".ocman-Session textarea")).to_be_focused()
    row(work, "Session Explore data").focus()
    page.keyboard.press("ArrowLeft")
    expect(row(work, "Worktree main")).to_be_focused()
    page.keyboard.press("End")
    expect(row(work, "Repository shop")).to_be_focused()
    page.keyboard.press("Home")
    expect(main).to_be_focused()
    page.keyboard.type("plo")
    expect(row(work, "Worktree plots")).to_be_focused()
    stops = work.get_by_role("treeitem").evaluate_all("rows => rows.map(row => row.tabIndex)")
    assert stops.count(0) == 1


def test_the_focus_stays_in_the_tree_when_its_row_goes_away(lab: Lab, work: Any) -> None:
    row(work, "Session Try polars instead of pandas").focus()
    lab.scene("forget", session_id="ses_polars")
    expect(row(work, "Session Try polars instead of pandas")).to_have_count(0)
    inside = "document.querySelector('.ocman-Tree').contains(document.activeElement)"
    work.page.wait_for_function(inside)


def test_a_filter_says_how_much_it_hides(work: Any) -> None:
    work.get_by_label("Filter worktrees and sessions").fill("loader")
    expect(work.get_by_role("treeitem")).to_have_count(4)
    expect(work.get_by_text("10 hidden")).to_be_visible()
    button(work, "Show all").click()
    expect(row(work, "Worktree plots")).to_be_visible()
    button(work, "Active").click()
    expect(row(work, "Session Explore data")).to_have_count(0)
    button(work, "All").click()


def test_names_are_text_whatever_is_in_them(lab: Lab, panel: Any) -> None:
    lab.show(panel, "hostile")
    ask = panel.locator("[data-ask=per_evil]")
    expect(ask).to_contain_text("<script>")
    expect(ask).to_contain_text(r"\u202egpj.sh")  # what is allowed is what is read
    expect(row(panel, "Worktree main")).to_be_visible()
    assert panel.page.evaluate("window.hacked") is None
    assert panel.locator("script, img").count() == 0
    tree = panel.get_by_role("tree")
    assert set(tree.get_by_role("treeitem").evaluate_all("rows => rows.map(row => row.offsetHeight)")) == {24}
    overflow = panel.locator(".ocman-Scroll").evaluate("box => box.scrollWidth - box.clientWidth")
    assert overflow <= 0
    # Right-to-left text turns round nothing but itself: the row's age stays at the end.
    rtl = panel.get_by_role("treeitem").filter(has_text="مرحبا")
    mark, age = (rtl.locator(one).bounding_box() for one in (".ocman-Glyph", ".ocman-Row-age"))
    assert mark["x"] < age["x"]


def test_what_is_missing_and_another_version_are_told(lab: Lab, panel: Any) -> None:
    lab.show(panel, "quiet")
    hint = "npm i -g opencode-ai"
    tool = {"name": "opencode", "required": True, "reason": "OpenCode is not installed.", "hint": hint}
    lab.scene("tools", missing=[tool], version="99.0.0")
    button(panel, "Refresh").click()
    card = panel.get_by_role("region", name="opencode is missing")
    expect(card).to_contain_text(hint)
    expect(panel).to_contain_text("the server is version 99.0.0")
    lab.scene("tools", missing=[])
    button(card, "Check again").click()
    expect(card).to_have_count(0)
    expect(panel).not_to_contain_text("99.0.0")


def test_two_thousand_sessions_are_drawn_and_stay_live(lab: Lab, panel: Any) -> None:
    lab.show(panel, "many")
    expect(row(panel, "Repository analysis, running, 200 worktrees")).to_be_visible()
    assert panel.get_by_role("treeitem").count() < 150
    row(panel, "Repository analysis").focus()
    panel.page.keyboard.press("End")
    expect(row(panel, "Session Session 1999")).to_be_focused()
    last = panel.get_by_role("treeitem").last
    assert last.get_attribute("aria-posinset") == last.get_attribute("aria-setsize") == "10"
    panel.page.keyboard.press("Home")
    expect(row(panel, "Repository analysis")).to_be_focused()
    expect(row(panel, "Session Session 0")).to_have_count(1)
    panel.locator(".ocman-Scroll").evaluate("box => { box.scrollTop = 10_000; }")
    expect(row(panel, "Worktree idea-037")).to_be_in_viewport()
    expect(row(panel, "Repository analysis")).to_have_count(1)  # the way in by keyboard
    panel.locator(".ocman-Scroll").evaluate("box => { box.scrollTop = 0; }")
    started = time.monotonic()
    lab.scene("update", session_id="ses_0000", status="busy")
    expect(row(panel, "Session Session 0, busy")).to_have_count(1)
    assert time.monotonic() - started < 3


def test_a_server_that_is_gone_and_comes_back(lab: Lab, work: Any, lab_page: tuple[Any, Faults]) -> None:
    page, faults = lab_page
    lab.stop()
    expect(work.get_by_text("reconnecting", exact=True)).to_be_visible()
    expect(work).to_contain_text("Server gone. Reconnecting")
    expect(row(work, "Worktree fix-loader")).to_be_visible()
    assert button(work, "Allow once, fix-loader, /etc/hosts").get_attribute("aria-disabled") == "true"
    lab.start()
    close = page.get_by_role("dialog").get_by_role("button", name="Close")
    page.add_locator_handler(close, lambda: close.click())  # Lab's own word about it
    expect(work.get_by_text("live", exact=True)).to_be_visible(timeout=30_000)
    expect(work).not_to_contain_text("Server gone")
    # It is a new scene, and what is shown is what the server knows now.
    expect(row(work, "Worktree fix-loader")).to_have_count(0)
    lab.show(work, "work")
    expect(row(work, "Session Fix the loader, needs you")).to_be_visible()
    faults.found.clear()
