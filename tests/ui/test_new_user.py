"""The way of a new user in a browser, on real parts: JupyterLab or Notebook 7, OpenCode, the scripted model."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from ocman_jupyter.demo.ending import end_the_rest, opencode_processes, stop_instances
from ocman_jupyter.demo.model import ModelServer
from ocman_jupyter.demo.place import Place
from ocman_jupyter.demo.sample import NAME, make_sample
from ocman_jupyter.demo.server import JupyterServer, free_port
from tests.ui.conftest import ROOT, TOKEN, Faults, button, choose, new_page, row
from tests.ui.test_cell_panels import run_all
from tests.ui.test_manners import tab
from tests.ui.test_notebook7 import NOTEBOOKS_OWN

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

    def notebook(self, name: str, *sources: str) -> None:
        """A notebook in a folder of the project that git ignores."""
        folder = self.place.project / "results"
        folder.mkdir(exist_ok=True)
        cells = [v4.new_code_cell(source) for source in sources]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(v4.new_notebook(cells=cells, metadata=kernel), folder / name)

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.place.project), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory, front_end: Path, newest_opencode: Path, nothing_left_running: None
) -> Iterator[Demo]:
    """One for all of these tests."""
    home = tmp_path_factory.mktemp("new-user").resolve()
    place = Place(home / "demo")
    place.folder.mkdir()
    labextensions = home / "share" / "labextensions"
    labextensions.mkdir(parents=True)
    (labextensions / "ocman-jupyter").symlink_to(front_end)
    with ModelServer() as model:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(newest_opencode.parent), prepend=os.pathsep)
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


OpenPage = Callable[..., tuple[Any, Faults]]


# The sample project is made with an event loop of its own, so it has to be there before the browser.
@pytest.fixture
def open_page(demo: Demo, browser: Any) -> Iterator[OpenPage]:
    """``page, faults = open_page(address)``: a page in a new browser, JupyterLab if nothing else is said.

    No page may end with a fault.
    """
    opened: list[tuple[Any, Faults]] = []

    def open_one(address: str = "lab?reset") -> tuple[Any, Faults]:
        opened.append(new_page(browser, demo, address))
        return opened[-1]

    yield open_one
    for page, _ in opened:
        page.context.close()
    for _, faults in opened:
        faults.found = [fault for fault in faults.found if fault != NOTEBOOKS_OWN]
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


class Idea:
    """One task on its way from the form to the removal; each step says what must be seen."""

    def __init__(self, demo: Demo, page: Any, panel: Any, title: str) -> None:
        self.demo, self.page, self.panel, self.title = demo, page, panel, title
        self.branch = title.lower().replace(" ", "-")
        self.worktree = demo.worktree(self.branch)
        self.session = page.locator(".ocman-Session")
        self.log = self.session.get_by_role("log", name=f"Conversation {title}")

    def begin(self) -> None:
        """The plan is read before anything is made."""
        button(self.panel, "New worktree session").first.click()
        form = self.panel.get_by_role("dialog", name="New worktree session")
        form.get_by_label("Name or task").fill(self.title)
        expect(form).to_contain_text(str(self.worktree), timeout=SLOW)
        expect(form).to_contain_text(f"{self.branch} new")
        expect(form).to_contain_text(re.compile(r"main \([0-9a-f]{7}"))
        assert not self.worktree.exists()
        form.get_by_label("First prompt (optional)").fill(
            f"SLEEP 1\nREAD {LOADER}\nEDIT {LOADER}: Reads the measurements. -> Streams the measurements.\n"
            f"READ {self.demo.outside}\nSTREAM 60 20"
        )
        button(form, "Create").click()
        expect(row(self.panel, f"Worktree {self.branch}")).to_be_visible(timeout=SLOW)
        assert self.worktree.is_dir()

    def watch(self) -> None:
        """What the agent does is seen while it does it."""
        session, outside = self.session, self.demo.outside
        expect(entry(session, "You")).to_contain_text(f"READ {LOADER}", timeout=SLOW)
        expect(entry(session, "Agent").first).to_contain_text(".", timeout=SLOW)
        expect(entry(session, f"read {LOADER}, ok")).to_be_visible(timeout=SLOW)
        edited = entry(session, f"edit {LOADER}, ok")
        expect(edited.get_by_role("img", name="1 lines added, 1 removed")).to_be_visible(timeout=SLOW)
        expect(entry(session, f"read {outside}, running")).to_be_visible(timeout=SLOW)

    def read_ask(self) -> None:
        """The ask says what is asked and what "always" would grant."""
        outside, asked = self.demo.outside, dock(self.session)
        expect(asked).to_contain_text("Needs a permission: work outside the worktree")
        expect(asked).to_contain_text("outside the worktree")
        expect(asked.get_by_role("group", name="What would be done")).to_contain_text(str(outside))
        expect(asked).to_contain_text(f"Always would allow all work on what is at {outside.parent}/*")
        expect(row(self.panel, f"Session {self.title}, needs you")).to_be_visible()

    def allow_once(self) -> None:
        """Text comes as it is written, until the turn is over."""
        asked, log = dock(self.session), self.log
        ready(asked, f"Allow once, {self.branch}, {self.demo.outside}").click()
        expect(asked).to_contain_text("Allowed once")
        expect(log).to_contain_text("w00005", timeout=SLOW)
        assert "w00059" not in log.inner_text()
        expect(button(self.session, f"Stop {self.title}")).to_be_visible()
        expect(log).to_contain_text("w00059", timeout=SLOW)
        expect(entry(self.session, "Turn finished")).to_be_visible()
        expect(entry(self.session, f"read {self.demo.outside}, ok")).to_be_visible()
        expect(row(self.panel, f"Session {self.title}, idle")).to_be_visible()
        expect(asked).to_have_count(0)

    def compare(self) -> None:
        """What came of it."""
        button(self.session, "Diff, 1 changed file").click()
        diff = self.page.locator(".ocman-Diff")
        file = diff.get_by_role("region", name=f"{LOADER}, modified, 1 lines added, 1 removed")
        lines = file.get_by_role("table", name=f"Lines of {LOADER}")
        expect(lines.get_by_role("row", name='1 removed """Reads the measurements."""')).to_be_visible()
        expect(lines.get_by_role("row", name='1 added """Streams the measurements."""')).to_be_visible()

    def go_on(self) -> Any:
        """Another prompt, in the session that is in front; the field for the next one."""
        message = self.session.get_by_role("textbox", name=f"Message to {self.branch}")
        message.fill("SAY The loader streams now.")
        message.press("Enter")
        expect(message).to_have_value("")
        self.answered()
        expect(row(self.panel, f"Session {self.title}, idle")).to_be_visible(timeout=SLOW)
        return message

    def answered(self) -> None:
        expect(entry(self.session, "Agent").last).to_have_text("The loader streams now.", timeout=SLOW)

    def remove(self) -> None:
        """The worktree goes only after its loss was accepted, and its branch stays."""
        page, branch = self.page, self.branch
        choose(row(self.panel, f"Worktree {branch}"), "Remove Worktree…")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("One thing would be lost")
        expect(dialog).to_contain_text(str(self.worktree))
        remove = button(dialog, "Remove")
        expect(remove).to_be_disabled()
        changes = dialog.get_by_role("region", name="Changes that are not committed")
        expect(changes).to_contain_text(LOADER)
        changes.get_by_role("checkbox", name="Lose these changes").check()
        expect(dialog.get_by_role("checkbox", name=f"Delete the branch too: {branch}")).not_to_be_checked()
        remove.click()
        expect(dialog).to_have_count(0, timeout=SLOW)
        expect(row(self.panel, f"Worktree {branch}")).to_have_count(0)
        expect(page.locator(".Toastify__toast").filter(has_text=f"Removed worktree {branch}.")).to_be_visible()
        assert not self.worktree.exists()
        assert str(self.worktree) not in self.demo.git("worktree", "list", "--porcelain")
        assert branch in self.demo.git("branch", "--list", branch)


def test_from_the_first_click_to_the_removal(demo: Demo, open_page: OpenPage) -> None:
    page, _ = open_page()
    idea = Idea(demo, page, show_panel(page), "Stream the loader")
    idea.begin()
    idea.watch()
    idea.read_ask()
    # It is told wherever one looks.
    expect(tab(page, f"! {idea.title}")).to_have_count(1)
    expect(page.locator(".jp-SideBar [data-id='ocman-panel']")).to_have_accessible_name("ocman, 1 session needs you")
    idea.allow_once()
    idea.compare()
    expect(page.get_by_role("tabpanel", name=f"Diff {idea.branch}")).to_be_visible()
    tab(page, idea.title).click()
    message = idea.go_on()

    # What is not sent yet is there after a reload.
    draft = "and write a test for it"
    with page.expect_response(lambda answer: answer.request.method == "PUT" and draft in str(answer.request.post_data)):
        message.fill(draft)
    page.goto(page.url.split("?")[0])
    tab(page, idea.title).click()
    expect(message).to_have_value(draft)
    idea.answered()
    show_panel(page)
    idea.remove()


def test_the_same_in_notebook_7(demo: Demo, open_page: OpenPage) -> None:
    page, _ = open_page("tree")
    panel = page.get_by_role("region", name="ocman sessions")
    page.get_by_role("menuitem", name="View", exact=True).click()
    page.get_by_role("menuitem", name="Show ocman Panel").click()
    idea = Idea(demo, page, panel, "Stream it in Notebook")
    idea.begin()
    idea.watch()
    idea.read_ask()
    idea.allow_once()
    idea.compare()
    row(panel, f"Session {idea.title}").click()
    idea.go_on()
    idea.remove()


def test_a_cell_of_notebook_7_shows_the_session_that_it_began(demo: Demo, open_page: OpenPage) -> None:
    branch = "from-a-cell"
    demo.notebook("cell.ipynb", "%load_ext ocman_jupyter", f'%ocman wt {branch} "READ {demo.outside}"')
    page, _ = open_page("notebooks/results/cell.ipynb")
    run_all(page)
    panel = page.locator("[class*=ocman-live-]")
    expect(panel.get_by_text("outside the worktree:").first).to_be_visible(timeout=SLOW)
    once = panel.get_by_role("button", name="Once")
    expect(once).to_be_enabled(timeout=SLOW)
    assert demo.worktree(branch).is_dir()
    once.click()
    expect(panel.get_by_text("Allowed once")).to_be_visible()
    expect(panel.get_by_text(OUTSIDE).last).to_be_visible(timeout=SLOW)


def test_an_ask_that_two_pages_answer_at_once_is_answered_once(demo: Demo, open_page: OpenPage) -> None:
    title = demo.session("two-pages", f"READ {demo.outside}\nSAY Both have seen it.")
    (first, _), (second, faults) = open_page(), open_page()
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


def test_an_opencode_that_was_killed_in_mid_stream_is_told_and_healed(demo: Demo, open_page: OpenPage) -> None:
    title = demo.session("killed", "STREAM 1200 20")
    page, faults = open_page()
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
    faults.found = [found for found in faults.found if "503" not in found]  # the browser reports what was not read


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


def test_what_an_agent_writes_is_text_and_never_runs(demo: Demo, open_page: OpenPage) -> None:
    title = demo.session("hostile", HOSTILE)
    page, _ = open_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    session = open_session(page, title)
    said = entry(session, "Agent").last
    expect(said).to_contain_text("the end", timeout=SLOW)
    expect(said.locator("strong")).to_have_text("bold")  # it is drawn, not only quoted
    expect(said.locator("pre")).to_have_text("<script>window.hacked = 8</script>")
    expect(said).to_contain_text("<script>window.hacked = 2</script>")  # nothing of what it says is left out
    expect(entry(session, "You")).to_contain_text("<script>window.hacked = 2</script>")
    log = session.get_by_role("log")
    for forbidden in ("script", "iframe", "svg[onload]", "img", "[onclick]", "[onerror]", "a[href^='javascript']"):
        expect(log.locator(forbidden)).to_have_count(0)
    for word in ("link", "anchor"):
        said.get_by_text(word, exact=True).click()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.hacked") is None
    assert [url for url in asked if url.endswith("/x")] == []
