"""The magics in a real IPython shell."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from ocman_jupyter.errors import (
    BranchCheckedOut,
    InvalidRequest,
    NoSuchWorktree,
    NotFound,
    OcmanError,
    OpenCodeError,
    WouldLoseWork,
)
from ocman_jupyter.notebook import complete, options, views
from tests.notebook.fake import FakeHost, differences, loss, permission, question


def run(shell: Any, code: str) -> Any:
    """The value of a cell; its error is raised."""
    result = shell.run_cell(code)
    if result.error_before_exec or result.error_in_exec:
        raise result.error_before_exec or result.error_in_exec
    return result.result


def test_line_magic_makes_a_worktree_and_sends_the_prompt(shell: Any, fake: FakeHost) -> None:
    result = run(shell, '%ocman wt fix-loader "make the loader stream" --base main --title T --agent build')
    assert isinstance(result, views.WorktreeResult) and result.prompt_sent
    asked = fake.given("create")
    assert (asked.branch, asked.prompt, asked.base, asked.title, asked.agent) == (
        "fix-loader",
        "make the loader stream",
        "main",
        "T",
        "build",
    )
    assert asked.directory.startswith("/") and asked.request_id
    assert shell.user_ns["_"] is result


def test_cell_magic_takes_the_body_as_the_prompt(shell: Any, fake: FakeHost) -> None:
    run(shell, "%%ocman wt fix\nmake it\n\n  work\n")
    assert fake.given("create").prompt == "make it\n\n  work"
    session_id = fake.known[next(iter(fake.known))].id
    run(shell, "%%ocman prompt fix\nmore")
    assert fake.given("prompt")[0] == session_id and fake.given("prompt")[1].text == "more"
    run(shell, "%%ocman prompt\nto the last one")
    assert fake.given("prompt")[0] == session_id


def test_options_may_stand_between_the_words(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt --base main fix --title T 'the prompt' --agent a")
    assert (fake.given("create").branch, fake.given("create").prompt) == ("fix", "the prompt")


def test_a_cell_that_is_run_twice_does_not_start_the_work_twice(shell: Any, fake: FakeHost) -> None:
    first = run(shell, '%ocman wt fix "do it"')
    second = run(shell, '%ocman wt fix "do it"')
    assert second.session_id == first.session_id and not second.prompt_sent
    assert "nothing was sent" in repr(second) and "--again" in repr(second)
    third = run(shell, '%ocman wt fix "do it" --again')
    assert third.session_id != first.session_id and third.prompt_sent


def test_each_run_is_a_request_of_its_own(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt a")
    one = fake.given("create").request_id
    run(shell, "%ocman wt a")
    assert fake.given("create").request_id != one


def test_names_are_expanded_and_never_taken_for_options(shell: Any, fake: FakeHost) -> None:
    shell.user_ns.update(path="a.csv", hostile='x" --base evil "$path', branch="fix")
    run(shell, '%ocman wt {branch} "read $path: {1 + 1}"')
    assert (fake.given("create").branch, fake.given("create").prompt) == ("fix", "read a.csv: 2")
    run(shell, '%ocman wt other "{hostile}"')
    assert fake.given("create").prompt == 'x" --base evil "$path' and fake.given("create").base is None
    run(shell, "%%ocman wt third\nread {path}")
    assert fake.given("create").prompt == "read a.csv"


def test_names_of_a_function_are_expanded(shell: Any, fake: FakeHost) -> None:
    run(shell, "def go(name):\n    return get_ipython().run_line_magic('ocman', 'wt {name}')\ngo('inside')")
    assert fake.given("create").branch == "inside"


def test_context_of_the_notebook_is_added_only_when_asked(shell: Any, fake: FakeHost) -> None:
    shell.user_ns["rows"] = ["secret row"]
    run(shell, '%ocman wt a "fix it" --with rows')
    assert "`rows`: list" in fake.given("create").prompt and "secret row" not in fake.given("create").prompt
    run(shell, '%ocman wt b "fix it" --with rows --with-data')
    assert "secret row" in fake.given("create").prompt


def test_the_last_error_of_the_notebook_not_of_ocman(shell: Any, fake: FakeHost) -> None:
    shell.run_cell("def broken(): raise ValueError('the reason')\nbroken()")
    with pytest.raises(InvalidRequest):
        run(shell, "%ocman wt")
    run(shell, '%ocman wt a "fix this" --with-error')
    prompt = fake.given("create").prompt
    assert (
        prompt.startswith("fix this")
        and "ValueError: the reason" in prompt
        and "InvalidRequest" not in prompt
    )
    assert "interactiveshell" not in prompt


@pytest.mark.parametrize(
    "code",
    [
        "%ocman wt",
        "%ocman wt a b c",
        '%ocman wt "a',
        "%ocman nope",
        "%ocman wt a --nope",
        "%ocman prompt a",
        '%ocman wt a "x" -p "y"',
        "%%ocman worktrees\nbody",
        "%%ocman wt a 'x'\nbody",
        "%ocman reply per_1 maybe",
        "%ocman wt a x --again --no-session",
        "%ocman local perhaps",
        "%ocman wt a --with x",
        '%ocman wt a " "',
        "%ocman wt a x --with-data",
        "%ocman help nope",
        "%ocman wt a x --with nothing",
    ],
)
def test_a_usage_error_is_one_typed_line_and_nothing_happens(
    shell: Any, fake: FakeHost, capsys: Any, code: str
) -> None:
    result = shell.run_cell(code)
    assert isinstance(result.error_in_exec, InvalidRequest)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    assert (
        shown.out.startswith("InvalidRequest [invalid_request]: ")
        and len(shown.out.strip().splitlines()) <= 2
    )
    assert not fake.calls


def test_an_error_shows_its_line_and_hint_and_can_be_caught(shell: Any, fake: FakeHost, capsys: Any) -> None:
    fake.fail = BranchCheckedOut()
    result = shell.run_cell("%ocman wt main")
    assert isinstance(result.error_in_exec, BranchCheckedOut)
    shown = capsys.readouterr().out.strip().splitlines()
    assert (
        shown[0] == "BranchCheckedOut [branch_checked_out]: The branch is checked out in the main checkout."
    )
    assert shown[1].startswith("  → ") and len(shown) == 2
    fake.fail = BranchCheckedOut()
    code = "import ocman_jupyter\ntry:\n    %ocman wt main\n"
    code += "except ocman_jupyter.OcmanError as error:\n    code = error.code\ncode"
    assert run(shell, code) == "branch_checked_out"


def test_prompt_that_waits_returns_the_answer(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt fix")
    turned = run(shell, '%ocman prompt fix "count" --wait')
    assert turned.answer == "did: count" and repr(turned) == "did: count"


def test_prompt_that_waits_raises_why_the_turn_failed(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt fix")
    fake.broken = "no such model"
    with pytest.raises(OpenCodeError, match="no such model"):
        run(shell, '%ocman prompt fix "count" --wait')


def test_prompt_that_waits_launches_an_opencode_that_is_gone(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt fix")
    fake.dead = True
    assert run(shell, '%ocman prompt fix "count" --wait').answer == "did: count"
    assert fake.names().count("prompt") == 1 and fake.names().count("ensure") == 1


def test_watch_of_a_session_that_failed_says_why(shell: Any, fake: FakeHost, capsys: Any) -> None:
    fake.add_session("/w", "broken", status="error", error="no such model")
    turned = run(shell, "%ocman watch broken")
    assert (turned.status, turned.error) == ("error", "no such model")
    assert "! failed: no such model\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("wt fix 'do it'  # later", ["wt", "fix", "do it"]),
        ("# nothing", []),
        ("wt fix 'issue #3 # here'", ["wt", "fix", "issue #3 # here"]),
        ('wt fix "say # it"\t# x "', ["wt", "fix", "say # it"]),
        ("wt fix#3 do#it", ["wt", "fix#3", "do#it"]),
        ("""wt a "it's" # it's""", ["wt", "a", "it's"]),
    ],
)
def test_a_comment_after_the_words_is_none_of_them(line: str, words: list[str]) -> None:
    assert options.split(line) == words


def test_a_comment_on_a_magic(shell: Any, fake: FakeHost) -> None:
    run(shell, '%ocman wt fix "do it"  # this one is "mine')
    assert (fake.given("create").branch, fake.given("create").prompt) == ("fix", "do it")
    run(shell, "%%ocman wt two  # the body is the prompt\nread it # all\n")
    assert (fake.given("create").branch, fake.given("create").prompt) == ("two", "read it # all")


def test_watch_prints_live_and_returns(shell: Any, fake: FakeHost, capsys: Any) -> None:
    run(shell, '%ocman wt fix "count"')
    turned = run(shell, "%ocman watch")
    assert turned.answer == "did: count"
    assert "> bash  pwd  ok 2.5 s\ndid: count\n" in capsys.readouterr().out


def test_objects_go_on(shell: Any, fake: FakeHost, capsys: Any) -> None:
    result = run(shell, "%ocman wt fix")
    assert result.prompt("again").queued is False
    assert result.wait().answer == "did: again"
    assert result.prompt("once more", wait=True).answer == "did: once more"
    assert "once more" in capsys.readouterr().out or result.watch().answer == "did: once more"
    assert result.abort().id == result.session_id
    assert result.refresh().status == "idle"
    assert result.session.title == "fix"
    result.remove(accept=["ignored"], delete_branch=True)
    asked = fake.given("remove")
    assert (asked.path, asked.accept, asked.delete_branch) == (result.worktree_path, ["ignored"], True)


def test_lists_and_asks(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt fix")
    assert [tree.branch for tree in run(shell, "%ocman wts")] == ["fix"]
    assert len(run(shell, "%ocman sessions")) == 1
    fake.add_session("/repo", "Fix the loader", id="ses_1")
    fake.pending["per_1"] = permission()
    assert "always would allow all work on what is at /etc/*" in repr(run(shell, "%ocman asks"))
    said = repr(run(shell, '%ocman reply reject "use the copy in data/"'))
    assert said == "Rejected: outside the worktree: /etc/hosts."
    assert fake.given("reply")[0] == "per_1"
    assert (fake.given("reply")[1].reply, fake.given("reply")[1].message) == (
        "reject",
        "use the copy in data/",
    )
    fake.pending["que_1"] = question()
    with pytest.raises(InvalidRequest, match="question"):
        run(shell, "%ocman reply que_1 once")
    assert repr(run(shell, "%ocman reply que_1 --answer pri")) == "Answered: price."
    assert fake.given("reply")[1].answers == [["price"]]
    outcomes = {"once": "Allowed once: outside the worktree: /etc/hosts.", "always": "Allowed always: /etc/*."}
    for reply, words in outcomes.items():
        fake.pending["per_1"] = permission()
        assert repr(run(shell, f"%ocman reply {reply}")) == words


def test_an_ask_of_another_repository_is_answered_by_name_only(shell: Any, fake: FakeHost) -> None:
    fake.add_session("/other", "Fix the loader", id="ses_1", repo_root="/other")
    fake.pending["per_1"] = permission()
    with pytest.raises(NotFound, match='In /other "Fix the loader" waits: outside the worktree') as caught:
        run(shell, "%ocman reply once")
    assert "`%ocman reply per_1 once|always|reject`" in (caught.value.hint or "")
    fake.pending["que_1"] = question()  # its session is not known: it may be anyone's
    with pytest.raises(NotFound):
        run(shell, "%ocman reply reject")
    assert "reply" not in fake.names()
    listed = run(shell, "%ocman asks")
    assert "in /other" in repr(listed) and "/other" in listed._repr_html_()
    fake.add_session("/repo", "Mine", id="ses_2")
    fake.pending["per_2"] = permission("per_2", "ses_2")
    assert repr(run(shell, "%ocman asks")).count("  in /") == 2
    run(shell, "%ocman reply once")
    assert fake.given("reply")[0] == "per_2"
    run(shell, "%ocman reply per_1 once")
    assert fake.given("reply")[0] == "per_1"


def test_questions_get_one_answer_each(shell: Any, fake: FakeHost) -> None:
    fake.pending["que_2"] = question("que_2", count=2)
    with pytest.raises(InvalidRequest, match="2 questions"):
        run(shell, "%ocman reply que_2 --answer price --answer weight --answer x")
    with pytest.raises(InvalidRequest, match="not one of the answers"):
        run(shell, "%ocman reply que_2 --answer price --answer zzz")
    run(shell, "%ocman reply que_2 --answer price --answer weight")
    assert fake.given("reply")[1].answers == [["price"], ["weight"]]


def test_diff_is_of_the_worktree_that_is_meant(
    shell: Any, fake: FakeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    fake.add_tree("main", str(tmp_path), is_main=True)
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    assert "Nothing differs." in repr(run(shell, "%ocman diff"))
    assert fake.given("diff") == (os.path.realpath(tmp_path), "base")
    run(shell, "%ocman wt fix --no-session")
    run(shell, "%ocman diff")
    assert fake.given("diff") == ("/repo/.worktrees/fix", "base")
    fake.differences = differences({"path": "a.py", "patch": "+x\n"}, {"path": "b.py", "patch": "+y\n"})
    found = run(shell, "%ocman diff fix --against HEAD")
    assert fake.given("diff") == ("/repo/.worktrees/fix", "HEAD")
    assert found.patch == "+x\n+y\n" and [file["path"] for file in found] == ["a.py", "b.py"]
    monkeypatch.chdir("/")
    run(shell, "%ocman rm fix")
    with pytest.raises(NoSuchWorktree):
        run(shell, "%ocman diff")


def test_rm_accepts_by_name_and_dry_run_only_looks(shell: Any, fake: FakeHost) -> None:
    run(shell, "%ocman wt fix --no-session")
    fake.reasons = [loss()]
    assert not run(shell, "%ocman rm fix --dry-run").safe
    assert "remove" not in fake.names()
    fake_remove, fake.fail = fake.fail, None
    run(shell, "%ocman rm fix --accept ignored,untracked --rescue out --delete-branch")
    asked = fake.given("remove")
    assert (
        asked.accept == ["ignored", "untracked"] and asked.rescue_to.endswith("/out") and asked.delete_branch
    )
    assert asked.rescue == ["ignored", "untracked", "uncommitted"]
    assert fake_remove is None


def test_rm_never_guesses(shell: Any, fake: FakeHost) -> None:
    fake.add_tree("fix-a")
    fake.add_tree("fix-b")
    with pytest.raises(InvalidRequest, match="fix-a, fix-b"):
        run(shell, "%ocman rm fix")
    with pytest.raises(OcmanError):
        run(shell, "%ocman rm fix-a --accept everything")
    assert "remove" not in fake.names()


def test_would_lose_work_names_the_reasons(shell: Any, fake: FakeHost) -> None:
    fake.add_tree("fix")
    fake.refuses = [loss()]
    with pytest.raises(WouldLoseWork) as caught:
        run(shell, "%ocman rm fix")
    assert caught.value.details["reasons"][0]["code"] == "ignored"
    shown = "\n".join(caught.value._render_traceback_())
    assert "--accept ignored" in shown and "--rescue DIR" in shown
    assert "ignored: Ignored files would go. (2.0 MB)" in shown and "out/x.csv" in shown
    with pytest.raises(WouldLoseWork) as caught:
        run(shell, "%ocman rm fix --rescue out")
    assert "--accept ignored" in (caught.value.hint or "") and "--rescue" not in (caught.value.hint or "")


@pytest.mark.parametrize(("code", "offered"), [("untracked", True), ("uncommitted", True), ("busy_session", False)])
def test_rescue_is_offered_for_what_can_be_rescued(shell: Any, fake: FakeHost, code: str, offered: bool) -> None:
    fake.add_tree("fix")
    fake.refuses = [loss(code)]
    with pytest.raises(WouldLoseWork) as caught:
        run(shell, "%ocman rm fix")
    assert ("--rescue DIR" in (caught.value.hint or "")) == offered


def test_a_branch_that_is_kept_against_the_wish_says_why(shell: Any, fake: FakeHost) -> None:
    for branch in ("fix/it", "other", "third"):
        fake.add_tree(branch)
    fake.keeps_branches = True
    said = repr(run(shell, "%ocman rm fix/it --delete-branch"))
    assert "its branch is kept" in said and "ocman did not make it" in said and "git branch -d fix/it" in said
    assert "git branch -d third" in repr(run(shell, "%ocman rm /repo/.worktrees/third --delete-branch"))
    assert repr(run(shell, "%ocman rm other")) == "Worktree removed; its branch is kept."


def test_help_says_how_a_prompt_gets_several_lines(shell: Any, fake: FakeHost) -> None:
    for verb, words in {"wt": "%%ocman wt BRANCH", "prompt": "%%ocman prompt SESSION"}.items():
        assert f"{words} takes the rest of its cell" in " ".join(repr(run(shell, f"%ocman help {verb}")).split())


def test_session_takes_a_directory_or_a_prompt_or_both(shell: Any, fake: FakeHost, tmp_path: Any) -> None:
    run(shell, '%ocman session "look around"')
    assert (fake.given("create_session").prompt) == "look around"
    run(shell, f'%ocman session {tmp_path} "look around"')
    assert fake.given("create_session").directory == str(tmp_path)
    run(shell, f"%ocman session {tmp_path}")
    assert fake.given("create_session").prompt is None


def test_ensure_stop_doctor_attach(shell: Any, fake: FakeHost, tmp_path: Any) -> None:
    assert run(shell, "%ocman ensure").launched
    run(shell, "%ocman ensure --restart --force")
    assert fake.given("restart")[1] is True
    run(shell, f"%ocman stop {tmp_path}")
    assert fake.given("stop") == (str(tmp_path), False)
    assert run(shell, "%ocman doctor").healthy
    assert f"ocman-jupyter attach '{tmp_path}/a b'" in repr(run(shell, f"%ocman attach '{tmp_path}/a b'"))


def test_dry_run_changes_nothing(shell: Any, fake: FakeHost) -> None:
    plan = run(shell, "%ocman wt fix --dry-run")
    assert "origin/main (aaaaaaaa, 2 h old)" in repr(plan) and "create" not in fake.names()


@pytest.mark.parametrize("code", ["%ocman", "%ocman help", "%ocman help wt", "%ocman wt --help", "%ocman -h"])
def test_help(shell: Any, fake: FakeHost, code: str) -> None:
    shown = run(shell, code)
    assert "wt" in repr(shown) and shown._repr_html_().startswith("<pre>") and not fake.calls


def test_verbs_of_later_parts_are_not_offered(shell: Any) -> None:
    for verb in ("merge", "repair", "project", "kernel", "variants", "hosts", "loops", "mcp"):
        with pytest.raises(InvalidRequest):
            run(shell, f"%ocman {verb}")


def test_unload_takes_everything_away(shell: Any) -> None:
    hooks = len(shell.events.callbacks["post_run_cell"])
    shell.run_line_magic("unload_ext", "ocman_jupyter")
    assert shell.find_line_magic("ocman") is None
    assert len(shell.events.callbacks["post_run_cell"]) == hooks - 1
    shell.run_line_magic("load_ext", "ocman_jupyter")
    shell.run_line_magic("reload_ext", "ocman_jupyter")
    assert len(shell.events.callbacks["post_run_cell"]) == hooks


# --- completion ------------------------------------------------------------------------------


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> complete.Names:
    names = complete.Names()
    monkeypatch.setattr(complete, "NAMES", names)
    return names


def completions(shell: Any, line: str) -> list[str]:
    # Where we know nothing IPython's own matchers answer; they say `%%…`.
    found = shell.Completer.complete(line_buffer=line)[1]
    return [word for word in found if not word.startswith("%")]


def test_tab_completes_verbs_options_branches_sessions_asks_and_variables(
    shell: Any, fake: FakeHost, names: complete.Names
) -> None:
    run(shell, "%ocman wt fix-loader")
    fake.pending["per_9"] = permission("per_9")
    shell.user_ns["my_frame"] = 1
    assert completions(shell, "%ocman w") == ["wt", "worktrees", "watch", "wts", "worktree"]
    assert completions(shell, "%ocman rm fi") == ["fix-loader"]
    assert completions(shell, "%ocman watch ses_")[0].startswith("ses_0")
    assert completions(shell, "%ocman prompt fix") == ["fix-loader"]
    assert "--again" in completions(shell, "%ocman wt fix --ag")
    assert completions(shell, "%ocman reply per") == ["per_9"]
    assert completions(shell, "%ocman reply per_9 o") == ["once"]
    assert completions(shell, "%ocman rm x --accept ig") == ["ignored"]
    assert completions(shell, "%ocman wt x 'p' --with my_f") == ["my_frame"]
    assert completions(shell, "%%ocman wt fi") == ["fix-loader"]
    assert completions(shell, "%ocman help wa") == ["watch"]
    assert completions(shell, "x = %ocman rm fi") in (["fix-loader"], [])


def test_a_completion_does_not_wait_for_a_slow_host_and_launches_nothing(
    shell: Any, fake: FakeHost, names: complete.Names
) -> None:
    import asyncio

    async def slow(directory: str, changes: bool = True) -> Any:
        await asyncio.sleep(0.6)
        return await FakeHost.worktrees(fake, directory, changes)

    from ocman_jupyter.notebook import api

    fake.add_tree("fix-loader")
    api.DESK.verbs().client._host.worktrees.list = slow  # type: ignore[attr-defined]
    begun = time.monotonic()
    assert completions(shell, "%ocman rm fi") == []
    assert time.monotonic() - begun < 0.5
    deadline = time.monotonic() + 5
    while completions(shell, "%ocman rm fi") != ["fix-loader"]:
        assert time.monotonic() < deadline
    assert not {"ensure", "create", "prompt"} & set(fake.names())


def test_a_completion_that_fails_completes_nothing(shell: Any, fake: FakeHost, names: complete.Names) -> None:
    fake.fail = RuntimeError("boom")
    assert completions(shell, "%ocman rm fi") == []
