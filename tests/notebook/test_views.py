"""What the verbs return: readable, harmless, and only what was answered."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest

from ocman_jupyter.notebook import removing, views
from tests.notebook.fake import FakeHost, differences, instance, loss, permission

HOSTILE = "<script>alert(1)</script>\x1b[2J\"'><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[Any] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def tree(**more: Any) -> dict[str, Any]:
    fake = FakeHost()
    found = fake.add_tree(more.pop("branch", "fix"), **more)
    return found.model_dump(mode="json")


def session(title: str = "t", **more: Any) -> dict[str, Any]:
    return FakeHost().add_session("/repo/.worktrees/fix", title, **more).model_dump(mode="json")


def created(**more: Any) -> dict[str, Any]:
    return {
        "session_id": "ses_1",
        "worktree_path": "/w",
        "branch": "fix",
        "repo_root": "/r",
        "host": "local",
        "base": {"ref": "origin/main", "sha": "abcdef0123", "age_seconds": 5},
        "reused": False,
        "branch_existed": False,
        "carried": [],
        "setup": None,
        "inherited_permissions": 0,
        "session_reused": False,
        "prompt_sent": True,
        "warnings": [],
        "session": session(),
        **more,
    }


def hostile_views() -> list[views.Answer]:
    bad_session = session(HOSTILE, pending=[permission().model_copy(update={"patterns": [HOSTILE]})])
    warnings = [{"code": "x", "message": HOSTILE}]
    plan = {
        "worktree_path": HOSTILE,
        "branch": HOSTILE,
        "base": {"ref": HOSTILE, "sha": HOSTILE},
        "reused": False,
        "branch_existed": False,
        "carry": [{"path": HOSTILE, "bytes": 1, "how": "copy"}],
        "setup": [HOSTILE],
        "warnings": warnings,
    }
    bad_tree = {**tree(branch=HOSTILE, path="/w/" + HOSTILE), "sessions": [bad_session]}
    bad_ask = (
        permission().model_copy(update={"title": HOSTILE, "metadata": {"filepath": HOSTILE}}).model_dump()
    )
    return [
        views.Session(bad_session),
        views.SessionList({"sessions": [bad_session], "hidden": 1}),
        views.Worktree(bad_tree),
        views.WorktreeList({"repo_root": "/r", "worktrees": [bad_tree], "sessions_elsewhere": []}),
        views.WorktreeResult(created(branch=HOSTILE, worktree_path=HOSTILE, warnings=warnings, carried=plan["carry"])),
        views.Plan({"plan": plan}),
        views.Ask(bad_ask),
        views.AskList({"asks": [bad_ask]}),
        views.Diff(differences({"path": HOSTILE, "patch": HOSTILE}).model_dump(mode="json")),
        removing.Removal({"safe": False, "reasons": [{**loss().model_dump(), "message": HOSTILE}]}),
        views.Report({"checks": [{"name": HOSTILE, "status": "error", "message": HOSTILE, "hint": HOSTILE}]}),
        views.Turned({"session_id": "ses_1", "status": "idle", "answer": HOSTILE, "error": None}),
        views.Answer({"x": HOSTILE}),
    ]


@pytest.mark.parametrize("view", hostile_views(), ids=lambda view: type(view).__name__)
def test_hostile_titles_and_names_do_nothing_in_page_or_terminal(view: views.Answer) -> None:
    page = Tags(view._repr_html_())
    assert page.tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "br", "details", "summary", "pre"}
    assert set(page.attributes) <= {("style", "text-align:left")}
    assert "alert" in view._repr_html_()  # the text is there, as text
    assert "\x1b" not in repr(view) + view._repr_html_()


def test_fields_are_attributes_and_data_is_the_whole_answer() -> None:
    answer = created()
    result = views.WorktreeResult(answer)
    assert result.branch == "fix" and result.data is answer and "worktree_path" in dir(result)
    assert result.session is not None and result.session.title == "t"
    with pytest.raises(AttributeError):
        result.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("answer", "prompted", "words"),
    [
        (created(), True, "sent to a new session"),
        (created(prompt_sent=False, session_reused=True), True, "Use --again"),
        (created(prompt_sent=False, session_reused=True), False, "session that was there"),
        (created(prompt_sent=False), False, "waits for a prompt"),
        (created(prompt_sent=False, session_id=None, session=None), False, "No session"),
    ],
)
def test_the_answer_says_what_happened(answer: dict[str, Any], prompted: bool, words: str) -> None:
    result = views.WorktreeResult(answer)
    result.prompted = prompted
    assert words in repr(result)
    assert ("made from origin/main (abcdef01)") in repr(result)


def test_list_of_worktrees_says_state_changes_and_worst_status() -> None:
    rows = [
        tree(branch="main", path="/repo", is_main=True, merged="yes"),
        {
            **tree(branch="a", changes={"modified": 2, "untracked": 1, "conflicted": 0}, ahead=2, behind=1),
            "sessions": [session("one", status="idle"), session("two", status="needs_you")],
        },
        tree(branch="b", state="missing"),
        tree(
            branch="c",
            locked=True,
            operation="rebase",
            changes={"modified": 0, "untracked": 0, "conflicted": 0},
        ),
        tree(branch="fresh", merged="yes", head="0" * 40, ahead=0),
        tree(branch="done", merged="yes"),
        tree(branch="sq", merged="squashed", ahead=3),
    ]
    listing = {"repo_root": "/repo", "worktrees": rows, "sessions_elsewhere": [session(), session()]}
    shown = repr(views.WorktreeList(listing)).splitlines()
    assert shown[1].split() == ["main", "(main)"]
    assert "2 modified, 1 untracked" in shown[2] and "up 2 down 1" in shown[2]
    assert "needs you" in shown[2] and "(+1)" in shown[2]
    assert "missing" in shown[3]
    assert "locked, rebase, clean" in shown[4]
    assert "merged" not in shown[5] and "merged" in shown[6] and "up 3 squash-merged" in shown[7]
    assert shown[8] == "2 more sessions elsewhere."


def test_a_table_is_read_from_the_left_and_has_no_column_that_says_nothing() -> None:
    plain = tree(made_by_ocman=False, base=None, merged="yes")
    listing = views.WorktreeList({"worktrees": [plain], "sessions_elsewhere": []})
    assert "base" not in repr(listing) and "<th" in listing._repr_html_() and "base" not in listing._repr_html_()
    assert "<td>" not in listing._repr_html_() and '<td style="text-align:left">fix</td>' in listing._repr_html_()
    ahead = views.WorktreeList({"worktrees": [plain, tree(branch="b", ahead=2)], "sessions_elsewhere": []})
    assert "base" in repr(ahead).splitlines()[0] and "up 2" in repr(ahead)


def test_states_have_the_words_of_the_pages() -> None:
    assert "— folder gone" in repr(views.Session(session(status="directory_missing")))
    assert "— failed" in repr(views.Session(session(status="error")))


def test_lists_are_sequences() -> None:
    listing = views.WorktreeList(
        {"worktrees": [{**tree(), "sessions": [session()]}], "sessions_elsewhere": []}
    )
    assert len(listing) == 1 and listing[0].branch == "fix" and [t.branch for t in listing] == ["fix"]
    assert len(listing[0].sessions) == 1


def test_empty_says_what_to_do_next() -> None:
    assert "%ocman wt" in repr(views.WorktreeList({"worktrees": [], "sessions_elsewhere": []}))
    assert repr(views.AskList({"asks": []})) == "Nothing needs you."


def test_hidden_sessions_are_counted() -> None:
    assert "3 not shown" in repr(views.SessionList({"sessions": [], "hidden": 3}))


def test_a_diff_says_what_became_of_each_file() -> None:
    cell = {"kind": "added", "cell_type": "code", "old_index": None, "new_index": 0}
    files = [
        {"path": "a.py", "additions": 12, "deletions": 3, "patch": "+<b>\n"},
        {"path": "new.png", "status": "added", "binary": True, "additions": None, "deletions": None},
        {"path": "to.py", "old_path": "from.py", "status": "renamed"},
    ]
    diff = views.Diff(differences(*files, truncated=True).model_dump(mode="json"))
    shown = repr(diff).splitlines()
    assert shown[1].split() == ["a.py", "modified", "+12", "-3"] and "binary" in shown[2]
    assert "from.py → to.py" in shown[3]
    assert shown[4:] == ["Compared with main (abcdef01).", "There is more that differs: not all of it is told."]
    assert "<pre>+&lt;b&gt;\n</pre>" in diff._repr_html_() and diff.patch == "+<b>\n"
    notebook = {**diff.data["files"][0], "notebook_diff": [cell, cell]}
    assert diff.row(notebook)[2] == "2 cells"


def test_removal_lists_reasons_with_sizes() -> None:
    shown = repr(removing.Removal({"safe": False, "reasons": [loss().model_dump()]}))
    assert "ignored: Ignored files would go. (2.0 MB)" in shown and "out/x.csv  2.0 MB" in shown


def test_unseeded_and_foreign_instances_are_said() -> None:
    data = {**instance("/r").model_dump(), "owner": "user", "permission_seeded": False, "launched": False}
    shown = repr(views.Instance(data))
    assert (
        "found running" in shown
        and "will not stop it" in shown
        and "without ocman's permission seed" in shown
    )


def test_a_report_is_healthy_without_an_error() -> None:
    check = {"name": "tmux", "status": "warning", "message": "not there", "hint": "apt-get install tmux"}
    report = views.Report({"checks": [check]})
    assert report.healthy and "tmux: apt-get install tmux" in repr(report)
    assert not views.Report({"checks": [{**check, "status": "error"}]}).healthy


def test_views_are_made_of_json() -> None:
    assert json.dumps(views.WorktreeResult(created()).data)


def test_what_came_along_is_said_in_a_few_lines():
    files = [{"path": f"data/{n}", "bytes": 1000, "how": "copy"} for n in range(7)]
    text = repr(views.WorktreeResult(created(carried=files)))
    assert "carried data/0 (1.0 KB, copied)" in text and "carried 2 more (2.0 KB)" in text
    assert "data/5" not in text
