"""The words of asks: the same in a notebook and in JupyterLab."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ocman_jupyter.notebook import asking
from tests.notebook.fake import permission, question

SOURCE = (Path(__file__).parents[2] / "labextension" / "src" / "asks.ts").read_text()


def cases(function: str) -> dict[str, str]:
    """For each permission the first words that a ``switch`` of ``asks.ts`` says."""
    body = SOURCE[SOURCE.index(f"function {function}(") :]
    body = body[: body.index("default:")]
    found: dict[str, str] = {}
    waiting: list[str] = []
    for case, words in re.findall(r"case '(\w+)':|trans\.__\('([^']+)'", body):
        if case:
            waiting.append(case)
        else:
            found.update(dict.fromkeys(waiting, words))
            waiting = []
    return found


def test_words_are_those_of_jupyterlab() -> None:
    assert cases("plainAskText") == asking.DEEDS
    grants = {permission: f"Always would allow {words}" for permission, words in asking.GRANTS.items()}
    assert cases("alwaysSentence") == grants
    outcomes = dict(re.findall(r"(\w+): trans\.__\('([^']+)'\)", SOURCE[SOURCE.index("function outcomeText") :])[:4])
    assert outcomes == asking.OUTCOMES


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ("outside the worktree:", "/etc/hosts")),
        ({"metadata": {}}, ("outside the worktree:", "/etc/*")),
        ({"permission": "bash", "metadata": {"command": "rm x", "filepath": "y"}}, ("run", "rm x")),
        ({"permission": "mine", "patterns": ["a", "b"]}, ("mine", "a, b")),
        ({"permission": "read", "metadata": {"filepath": 3}}, ("read", "/etc/*")),
    ],
)
def test_a_deed_has_an_object(facts: dict[str, object], words: tuple[str, str]) -> None:
    assert asking.deed(permission().model_copy(update=facts).model_dump()) == words


def test_what_always_grants_is_said_in_full() -> None:
    ask = permission().model_dump()
    assert asking.granted(ask) == "all work on what is at"
    assert asking.granted({**ask, "permission": "mine"}) == "“mine” for all that matches"
    assert asking.granted({**ask, "always": ["*"]}) == "everything that needs the permission “external_directory”:"


def test_an_answer_says_what_it_was() -> None:
    ask = permission().model_dump()
    assert asking.outcome(ask, {"reply": "always"}) == "Allowed always: /etc/*"
    assert asking.outcome(ask, {"reply": "reject"}) == "Rejected: outside the worktree: /etc/hosts"
    assert asking.outcome(question().model_dump(), {"reply": "reject"}) == "Rejected"
    assert asking.outcome(question().model_dump(), {"answers": [["a", "b"], ["c"]]}) == "Answered: a, b; c"
