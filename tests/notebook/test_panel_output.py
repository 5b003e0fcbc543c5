"""Panels in the output of a real kernel: what a notebook keeps of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebook.live import live_project
from tests.notebook.test_views import Tags

pytestmark = pytest.mark.slow

VIEW = "application/vnd.jupyter.widget-view+json"
PREPARE = """
import threading
from tests.notebook.fake import install
fake = install()
%load_ext ocman_jupyter
import ocman_jupyter as ocman
def until(condition):
    pause = threading.Event()
    for _ in range(1000):
        if condition(): return
        pause.wait(0.01)
    raise AssertionError("it did not happen in time")
"""


def run(*cells: str, prepare: str = PREPARE, cwd: Path | None = None) -> nbformat.NotebookNode:
    """A notebook of these cells, run as a page or a program runs it."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (prepare, *cells)])
    root = str(Path(__file__).parents[2])
    client = NotebookClient(notebook, timeout=100, kernel_name="python3")
    client.execute(env={**os.environ, "PYTHONPATH": root}, **({"cwd": str(cwd)} if cwd else {}))
    return notebook


def outputs(notebook: nbformat.NotebookNode, cell: int) -> list[dict[str, Any]]:
    return [output["data"] for output in notebook.cells[cell].outputs if "data" in output]


def test_wt_shows_the_panel_and_keeps_a_readable_view() -> None:
    notebook = run(
        '%ocman wt fix "<script>alert(1)</script>"',
        "panel = _._panel\n"
        "until(lambda: 'did: ' in panel.still()[0] and panel._seen.status == 'idle')\n"
        "until(lambda: not (panel._timer or panel._seen.changed or panel._saving or panel._loading))",
        "panel.close()\nuntil(lambda: not fake.places)\npanel",
        "Out[2]",
    )
    still, live = outputs(notebook, 1)
    assert notebook.cells[1].outputs[1].output_type == "execute_result"
    assert live[VIEW]["model_id"] in notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    assert "Worktree fix made" in live["text/plain"] and "Worktree fix made" in live["text/html"]
    # The end of the turn came after the cell was done, and is there.
    assert VIEW not in still and "did: &lt;script&gt;" in still["text/html"] and "as of " in still["text/html"]
    assert "Session ses_" in still["text/plain"] and "idle" in still["text/plain"]
    # A closed panel is a page to read; its result, shown again, has a new one.
    (closed,) = outputs(notebook, 3)
    assert VIEW not in closed and "did: " in closed["text/html"] and "Session ses_" in closed["text/plain"]
    again = outputs(notebook, 4)[-1]
    assert again[VIEW]["model_id"] != live[VIEW]["model_id"]
    for html in (still["text/html"], live["text/html"]):
        tags = Tags(html)
        assert "script" not in tags.tags and not [name for name, _ in tags.attributes if name.startswith("on")]


def test_panels_in_cells() -> None:
    notebook = run(
        "%ocman wt fix --no-session\nmade = ocman.worktree('fix', prompt='count')\nmade.wait()",
        "ocman.SessionPanel(made.session_id)",
        "ocman.Worktrees()",
        "len(fake.places)",
    )
    for cell, words in ((2, "did: count"), (3, "fix")):
        still, live = outputs(notebook, cell)
        assert live[VIEW]["model_id"] and words in still["text/html"]
        assert {"text/html", "text/plain"} <= set(live) and "run this cell" in live["text/html"]
    assert outputs(notebook, 4)[0]["text/plain"] == "1"


def test_words_that_stream_do_not_change_the_notebook() -> None:
    notebook = run(
        "made = ocman.worktree('fix', prompt='count')\nmade.wait()\nshown = ocman.SessionPanel(made.session_id)\n"
        "shown",
        "updates = []\n"
        "shown._still.update = lambda html, plain: updates.append(plain)\n"
        "until(lambda: shown._loaded and not shown._saving)\n"
        "updates.clear()\n"
        "from ocman_jupyter.notebook.worker import WORKER\n"
        "async def more():\n"
        "    for word in range(50):\n"
        "        last = fake.history[made.session_id][-1]\n"
        "        fake.tell(made.session_id, 'message.updated', session_id=made.session_id, message=last)\n"
        "        await __import__('asyncio').sleep(0.02)\n"
        "WORKER.submit(more()).outcome.result()\n"
        "len(updates)",
        "made.prompt('more', wait=True)\nuntil(lambda: updates and not shown._saving)\nlen(updates)",
    )
    assert outputs(notebook, 2)[-1]["text/plain"] == "0"
    assert outputs(notebook, 3)[-1]["text/plain"] == "1"


@pytest.mark.live
@pytest.mark.timeout(300)
def test_with_the_real_opencode(
    repository: Callable[..., Path],
    scripted_model: Any,
    opencode_binaries: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = repository(files={"loader.py": "x = 1\n"})
    prepare = PREPARE.replace("fake = install()\n", "").replace("range(1000)", "range(6000)")
    with live_project(root, scripted_model.url, opencode_binaries[-1], monkeypatch):
        notebook = run(
            '%ocman wt idea "RUN bash: git branch --show-current"',
            "panel = _._panel\nuntil(lambda: panel._seen.status == 'idle' and 'DONE' in panel.still()[0])",
            "panel._text.value = 'READ /etc/hosts'\npanel._send.click()\n"
            "until(lambda: panel._asks._allowing and not panel._asks._allowing[0].disabled)\n"
            "asked = panel._asks._text.value\npanel._asks._allowing[0].click()\n"
            "until(lambda: not panel._seen.asks and panel._seen.status == 'idle')\n"
            "until(lambda: panel.still()[0].count('DONE') == 2)\nasked",
            "until(lambda: '>idle<' in panel._head.value)\npanel._head.value",
            "panel.close()\npanel._verbs.feed.connected",
            prepare=prepare,
            cwd=root,
        )
    *_, still, live = outputs(notebook, 1)  # what was done stands above, when it took its time
    assert VIEW in live and "DONE" in still["text/html"] and "<b>you</b>" in still["text/html"]
    asked = outputs(notebook, 3)[-1]["text/plain"]
    assert "/etc/hosts" in asked and "Always would allow all work on what is at" in asked
    header = outputs(notebook, 4)[0]["text/plain"]
    assert "branch <bdi>idea</bdi>" in header and "idle" in header
    assert outputs(notebook, 5)[0]["text/plain"] == "False"
