"""A conversation stays at its end while it grows, as long as nobody scrolls up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.conftest import Lab, row
from tests.ui.test_axe import SAID

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

GROW_BEFORE_THE_SCROLL_IS_TOLD = """log => new Promise(done => {
  const list = log.querySelector('.ocman-Entries');
  const grow = height => list.append(Object.assign(document.createElement('div'), { style: `height: ${height}px` }));
  // The view scrolls to the end; before the page hears of that, there is more.
  log.addEventListener('scroll', () => {
    grow(200);
    requestAnimationFrame(() => requestAnimationFrame(() =>
      done(log.scrollHeight - log.scrollTop - log.clientHeight)));
  }, { capture: true, once: true });
  grow(2000);
})"""

SHRINK_AND_GROW = """log => new Promise(done => {
  const list = log.querySelector('.ocman-Entries');
  const grow = height => {
    const entry = Object.assign(document.createElement('div'), { style: `height: ${height}px` });
    list.append(entry);
    return entry;
  };
  const entry = grow(2000);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    entry.remove();
    log.getBoundingClientRect(); // laid out: the view cannot be where it was
    grow(1000);
    requestAnimationFrame(() => requestAnimationFrame(() =>
      done(log.scrollHeight - log.scrollTop - log.clientHeight)));
  }));
})"""


def test_what_grows_between_a_scroll_and_its_event_does_not_lose_the_end(lab: Lab, panel: Any) -> None:
    page = panel.page
    lab.show(panel, "work")
    row(panel, "Session Explore data").click()
    session = page.locator(".ocman-Session")
    for message in SAID[:2]:
        lab.scene("tell", items=["message.updated"], session_id="ses_explore", message=message)
    log = session.get_by_role("log")
    expect(log.get_by_role("heading", name="Plan")).to_be_visible()
    assert log.evaluate(GROW_BEFORE_THE_SCROLL_IS_TOLD) <= 1
    assert log.evaluate(SHRINK_AND_GROW) <= 1
    expect(session.get_by_role("button", name="Jump to the end")).to_have_count(0)
    # Who scrolls up has left it.
    log.evaluate("log => { log.scrollTop -= 500; }")
    expect(session.get_by_role("button", name="Jump to the end")).to_be_visible()
