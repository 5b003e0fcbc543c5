"""The way of a new user in a browser, on real parts: JupyterLab, the server extension, OpenCode, the scripted model."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.demo.ending import end_the_rest, opencode_processes, stop_instances
from ocman_jupyter.demo.model import ModelServer
from ocman_jupyter.demo.place import Place
from ocman_jupyter.demo.sample import NAME, make_sample
from ocman_jupyter.demo.server import JupyterServer, free_port
from ocman_jupyter.setup import numbers, version_of
from tests.conftest import BINARIES
from tests.ui.conftest import BUNDLE, ROOT, TOKEN, Faults, button, choose, new_page, row
from tests.ui.test_manners import tab

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(240)]

SLOW = 60_000
"""Milliseconds for what an OpenCode that has just been started does on a busy machine."""

LOADER = "src/harvest/load.py"
OUTSIDE = "No field gives more than twelve tonnes."


class Demo:
    """The demo, in a home of its own, while it runs."""

    def __init__(self, place: Place, server: JupyterServer) -> None:
        self.place = place
        self.url = server.url
        self.outside = place.folder / "shared" / "limits.txt"
        self._client = server.client()

    def worktree(self, branch: str) -> Path:
        return self.place.folder / ".worktrees" / NAME / branch

    def ask(self, method: str, path: str, **arguments: Any) -> Any:
        """A request to the server; its answer."""
        answer = self._client.request(method, f"api/ocman/{path}", **arguments)
        assert answer.is_success, answer.text
        return answer.json()

    def session(self, branch: str, script: str) -> str:
        """Open a worktree session with this prompt, as somebody else would; its title."""
        title = branch.replace("-", " ").capitalize()
        body = {"directory": str(self.place.project), "branch": branch, "title": title, "prompt": script}
        self.ask("POST", "worktrees", json=body)
        return title

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.place.project), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, nothing_left_running: None) -> Iterator[Demo]:
    """One for all of these tests, with the newest OpenCode that is given."""
    if not BINARIES:
        pytest.skip("no opencode: install it, or name it in OCMAN_TEST_OPENCODE")
    if not (BUNDLE / "static" / "style.js").exists():
        pytest.fail("The front end is not built: run `jlpm install && jlpm build:prod` in labextension/.")
    newest = max(BINARIES, key=lambda binary: numbers(version_of(binary)))
    home = tmp_path_factory.mktemp("new-user").resolve()
    place = Place(home / "demo")
    place.folder.mkdir()
    labextensions = home / "share" / "labextensions"
    labextensions.mkdir(parents=True)
    (labextensions / "ocman-jupyter").symlink_to(BUNDLE)
    with ModelServer() as model:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(newest.parent), prepend=os.pathsep)
            patch.setenv("JUPYTER_CONFIG_DIR", str(home / "config"))  # no settings of whoever runs this
            env = place.environment(model.url)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        env |= {"HOME": str(home), "PYTHONPATH": path, "JUPYTER_PATH": str(home / "share")}
        place.prepare(model.url)
        make_sample(place.folder)
        arguments = ["--no-browser", f"--ServerApp.port={free_port()}", f"--IdentityProvider.token={TOKEN}"]
        server = JupyterServer(place.project, env, place.log, lab=True, arguments=arguments)
        try:
            server.wait_ready()
            demo = Demo(place, server)
            demo.outside.parent.mkdir()
            demo.outside.write_text(OUTSIDE + "\n")
            yield demo
            demo.close()
        finally:
            server.stop()
            problem = stop_instances(env)
            left = end_the_rest(place)
    assert problem is None and left == []


OpenLab = Callable[[], tuple[Any, Faults]]


# The sample project is made with an event loop of its own, so it has to be there before the browser.
@pytest.fixture
def open_lab(demo: Demo, browser: Any) -> Iterator[OpenLab]:
    """``page, faults = open_lab()``: JupyterLab in a new browser.  No page may end with a fault."""
    opened: list[tuple[Any, Faults]] = []

    def open_one() -> tuple[Any, Faults]:
        opened.append(new_page(browser, demo, "lab?reset"))
        return opened[-1]

    yield open_one
    for page, _ in opened:
        page.context.close()
    for _, faults in opened:
        faults.none()


def show_panel(page: Any) -> Any:
    """ocman's panel, brought to the front as people do it."""
    side = page.locator(".jp-SideBar [data-id='ocman-panel']")
    side.wait_for()
    panel = page.get_by_role("region", name="ocman sessions")
    if not panel.is_visible():
        side.click()
    panel.wait_for()
    return panel


def open_session(page: Any, title: str) -> Any:
    """The tab of a session, opened from its row."""
    row(show_panel(page), f"Session {title}").click()
    return page.locator(".ocman-Session")


def entry(session: Any, name: str) -> Any:
    """What stands in the conversation under exactly this name."""
    return session.get_by_role("log").get_by_role("article", name=name, exact=True)


def dock(session: Any) -> Any:
    return session.get_by_role("region", name="Needs your answer")


def ready(place: Any, name: str) -> Any:
    """A button of an ask, once it has settled."""
    found = place.get_by_role("button", name=name, exact=True)
    expect(found).to_have_attribute("aria-disabled", "false", timeout=SLOW)
    return found


def test_from_the_first_click_to_the_removal(demo: Demo, open_lab: OpenLab) -> None:
    page, _ = open_lab()
    panel = show_panel(page)
    branch, title, worktree = "stream-the-loader", "Stream the loader", demo.worktree("stream-the-loader")

    # The plan is read before anything is made.
    button(panel, "New worktree session").first.click()
    form = panel.get_by_role("dialog", name="New worktree session")
    form.get_by_label("Name or task").fill(title)
    expect(form).to_contain_text(str(worktree), timeout=SLOW)
    expect(form).to_contain_text(f"{branch} new")
    expect(form).to_contain_text(re.compile(r"main \([0-9a-f]{7}"))
    assert not worktree.exists()
    form.get_by_label("First prompt (optional)").fill(
        f"SLEEP 1\nREAD {LOADER}\nEDIT {LOADER}: Reads the measurements. -> Streams the measurements.\n"
        f"READ {demo.outside}\nSTREAM 60 20"
    )
    button(form, "Create").click()
    expect(row(panel, f"Worktree {branch}")).to_be_visible(timeout=SLOW)
    assert worktree.is_dir()

    # What the agent does is seen while it does it.
    session = page.locator(".ocman-Session")
    log = session.get_by_role("log", name=f"Conversation {title}")
    expect(entry(session, "You")).to_contain_text(f"READ {LOADER}", timeout=SLOW)
    expect(entry(session, "Agent").first).to_contain_text(".", timeout=SLOW)
    expect(entry(session, f"read {LOADER}, ok")).to_be_visible(timeout=SLOW)
    edited = entry(session, f"edit {LOADER}, ok")
    expect(edited.get_by_role("img", name="1 lines added, 1 removed")).to_be_visible(timeout=SLOW)
    expect(entry(session, f"read {demo.outside}, running")).to_be_visible(timeout=SLOW)

    # The ask says what is asked and what "always" would grant, here and wherever one looks.
    asked = dock(session)
    expect(asked).to_contain_text("Needs a permission: external_directory")
    expect(asked).to_contain_text("outside the worktree")
    expect(asked.get_by_role("group", name="What would be done")).to_contain_text(str(demo.outside))
    expect(asked).to_contain_text(f"Always would allow all work on what is at {demo.outside.parent}/*")
    expect(tab(page, f"! {title}")).to_have_count(1)
    expect(page.locator(".jp-SideBar [data-id='ocman-panel']")).to_have_accessible_name("ocman, 1 session needs you")
    expect(row(panel, f"Session {title}, needs you")).to_be_visible()
    ready(asked, f"Allow once, {branch}, {demo.outside}").click()
    expect(asked).to_contain_text("Allowed once")

    # Text comes as it is written, until the turn is over.
    expect(log).to_contain_text("w00005", timeout=SLOW)
    assert "w00059" not in log.inner_text()
    expect(button(session, f"Stop {title}")).to_be_visible()
    expect(log).to_contain_text("w00059", timeout=SLOW)
    expect(entry(session, "Turn finished")).to_be_visible()
    expect(entry(session, f"read {demo.outside}, ok")).to_be_visible()
    expect(row(panel, f"Session {title}, idle")).to_be_visible()
    expect(asked).to_have_count(0)

    # What came of it.
    button(session, "Diff, 1 changed file").click()
    diff = page.get_by_role("tabpanel", name=f"Diff {branch}")
    file = diff.get_by_role("region", name=f"{LOADER}, modified, 1 lines added, 1 removed")
    lines = file.get_by_role("table", name=f"Lines of {LOADER}")
    expect(lines.get_by_role("row", name='1 removed """Reads the measurements."""')).to_be_visible()
    expect(lines.get_by_role("row", name='1 added """Streams the measurements."""')).to_be_visible()

    # It goes on, and what is not sent yet is there after a reload.
    tab(page, title).click()
    message = session.get_by_role("textbox", name=f"Message to {branch}")
    message.fill("SAY The loader streams now.")
    message.press("Enter")
    expect(message).to_have_value("")
    expect(entry(session, "Agent").last).to_have_text("The loader streams now.", timeout=SLOW)
    expect(row(panel, f"Session {title}, idle")).to_be_visible(timeout=SLOW)
    draft = "and write a test for it"
    with page.expect_response(lambda answer: answer.request.method == "PUT" and draft in str(answer.request.post_data)):
        message.fill(draft)
    page.goto(page.url.split("?")[0])
    tab(page, title).click()
    expect(message).to_have_value(draft)
    expect(entry(session, "Agent").last).to_have_text("The loader streams now.", timeout=SLOW)

    # The worktree goes only after its loss was accepted, and its branch stays.
    panel = show_panel(page)
    choose(row(panel, f"Worktree {branch}"), "Remove Worktree…")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("One thing would be lost")
    expect(dialog).to_contain_text(str(worktree))
    remove = button(dialog, "Remove")
    expect(remove).to_be_disabled()
    changes = dialog.get_by_role("region", name="Changes that are not committed")
    expect(changes).to_contain_text(LOADER)
    changes.get_by_role("checkbox", name="Lose these changes").check()
    expect(dialog.get_by_role("checkbox", name=f"Delete the branch too: {branch}")).not_to_be_checked()
    remove.click()
    expect(dialog).to_have_count(0, timeout=SLOW)
    expect(row(panel, f"Worktree {branch}")).to_have_count(0)
    expect(page.locator(".Toastify__toast").filter(has_text=f"Removed worktree {branch}.")).to_be_visible()
    assert not worktree.exists()
    assert str(worktree) not in demo.git("worktree", "list", "--porcelain")
    assert branch in demo.git("branch", "--list", branch)


def test_an_ask_that_two_pages_answer_at_once_is_answered_once(demo: Demo, open_lab: OpenLab) -> None:
    title = demo.session("two-pages", f"READ {demo.outside}\nSAY Both have seen it.")
    (first, _), (second, faults) = open_lab(), open_lab()
    one, other = (open_session(page, title) for page in (first, second))
    once = ready(dock(one), f"Allow once, two-pages, {demo.outside}")
    reject = ready(dock(other), f"Reject, two-pages, {demo.outside}")
    # The second page's answer is on its way when the first one's arrives.
    held: list[Any] = []
    second.route("**/asks/*/reply", lambda route: held.append(route))
    with second.expect_request("**/asks/*/reply"):
        reject.click()
    expect(dock(other)).to_contain_text("Sending…")
    once.click()
    expect(dock(other)).to_contain_text("Answered elsewhere: allowed once")
    expect(dock(one)).to_contain_text("Allowed once")
    with second.expect_response("**/asks/*/reply") as late:
        held[0].continue_()
    assert late.value.status == 404
    for session in (one, other):
        expect(entry(session, "Agent").last).to_have_text("Both have seen it.", timeout=SLOW)
        expect(entry(session, f"read {demo.outside}, ok")).to_be_visible()
        expect(dock(session)).to_have_count(0)
    faults.found = [found for found in faults.found if "404" not in found]  # the browser reports the late answer


def test_an_opencode_that_was_killed_in_mid_stream_is_told_and_healed(demo: Demo, open_lab: OpenLab) -> None:
    title = demo.session("killed", "STREAM 1200 20")
    page, faults = open_lab()
    session = open_session(page, title)
    expect(session.get_by_role("log")).to_contain_text("w00010", timeout=SLOW)
    (instance,) = demo.ask("GET", "instances")["instances"]
    os.kill(instance["pid"], signal.SIGKILL)

    # The tab says so, and what was said stays.
    failed = session.get_by_role("region", name="The turn failed")
    expect(failed).to_contain_text("OpenCode ended in the middle of this turn.", timeout=SLOW)
    expect(button(failed, "Retry")).to_be_visible()
    expect(session.get_by_role("log")).to_contain_text("w00010")
    panel = show_panel(page)
    expect(row(panel, f"Repository {NAME}, stopped")).to_be_visible()

    # Who comes to it later is told too, and starts another one.
    page.locator(".lm-TabBar-tab[data-ocman-status] .lm-TabBar-tabCloseIcon").click()
    session = open_session(page, title)
    gone = session.get_by_role("region", name="No OpenCode runs")
    expect(gone).to_be_visible()
    faults.found = [found for found in faults.found if "503" not in found]  # the browser reports what was not read
    button(gone, "Start").click()
    expect(gone).to_have_count(0, timeout=SLOW)
    expect(entry(session, "You")).to_have_text("STREAM 1200 20")
    expect(row(panel, f"Repository {NAME}, running")).to_be_visible()
    (healed,) = demo.ask("GET", "instances")["instances"]
    assert healed["pid"] != instance["pid"] and len(opencode_processes(demo.place)) == 1
    message = session.get_by_role("textbox", name="Message to killed")
    message.fill("SAY Here again.")
    message.press("Enter")
    expect(entry(session, "Agent").last).to_have_text("Here again.", timeout=SLOW)


HOSTILE = """\
<img src=x onerror="window.hacked = 1"> **bold**
<script>window.hacked = 2</script>
[link](javascript:window.hacked=3) <a href="javascript:window.hacked=4" onclick="window.hacked=5">anchor</a>

<iframe srcdoc="<script>parent.hacked = 6</script>"></iframe>
<svg onload="window.hacked = 7"></svg>

```html
<script>window.hacked = 8</script>
```
the end"""
"""Without a directive: the scripted model says it again."""


def test_what_an_agent_writes_is_text_and_never_runs(demo: Demo, open_lab: OpenLab) -> None:
    title = demo.session("hostile", HOSTILE)
    page, _ = open_lab()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    session = open_session(page, title)
    said = entry(session, "Agent").last
    expect(said).to_contain_text("the end", timeout=SLOW)
    expect(said.locator("strong")).to_have_text("bold")  # it is drawn, not only quoted
    expect(said.locator("pre")).to_have_text("<script>window.hacked = 8</script>")
    expect(entry(session, "You")).to_contain_text("<script>window.hacked = 2</script>")
    log = session.get_by_role("log")
    for forbidden in ("script", "iframe", "svg[onload]", "img", "[onclick]", "[onerror]", "a[href^='javascript']"):
        expect(log.locator(forbidden)).to_have_count(0)
    for word in ("link", "anchor"):
        said.get_by_text(word, exact=True).click()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.hacked") is None
    assert [url for url in asked if url.endswith("/x")] == []
