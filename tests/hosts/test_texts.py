"""Text that no URL, database or process can hold is refused by name, whichever way it comes in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter import errors
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.notebook.client import InProcessClient
from ocman_jupyter.settings import OcmanSettings

ODD = ["\ud800", "\udcff", "a\0b"]
IDS = ["surrogate", "byte", "nul"]

SESSION: dict[str, Callable[[Any, Any, str], Awaitable[Any]]] = {
    "get": lambda client, host, name: client.session(name),
    "messages": lambda client, host, name: client.messages(name),
    "todos": lambda client, host, name: client.todos(name),
    "abort": lambda client, host, name: client.abort(name),
    "prompt": lambda client, host, name: client.prompt(name, {"text": "x"}),
    "rename": lambda client, host, name: host.sessions.rename(name, "t"),
    "delete": lambda client, host, name: host.sessions.delete(name),
    "shell": lambda client, host, name: host.sessions.shell(name, "ls"),
    "command": lambda client, host, name: host.sessions.command(name, "init"),
    "fork": lambda client, host, name: host.sessions.fork(name),
    "summarize": lambda client, host, name: host.sessions.summarize(name),
    "diff": lambda client, host, name: host.diffs.session(name),
    "options": lambda client, host, name: host.composing.options(name),
    "files": lambda client, host, name: host.composing.files(name),
    "stream": lambda client, host, name: anext(client.stream(name)),
    "inherit": lambda client, host, name: host.sessions._inheritable(name),
}

FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("create", {"directory": "/r", "branch": "b"}),
    "plan": ("create", {"directory": "/r", "branch": "b", "dry_run": True}),
    "create_session": ("create_session", {"directory": "/r"}),
    "prompt": ("prompt", {"text": "x"}),
    "reply": ("reply", {"reply": "reject"}),
    "remove": ("remove", {"path": "/r"}),
}
WORDS: list[tuple[str, str, Callable[[str], Any]]] = [
    *(("create", name, str) for name in (
        "branch", "base", "title", "prompt", "agent", "inherit_from", "request_id", "host")),
    ("create", "directory", "/{}".format), ("create", "model", "p/{}".format), ("plan", "branch", str),
    *(("create_session", name, str) for name in (
        "title", "prompt", "agent", "inherit_from", "request_id", "project", "host")),
    ("create_session", "directory", "/{}".format), ("create_session", "model", "p/{}".format),
    ("prompt", "text", str), ("prompt", "agent", str), ("prompt", "model", "p/{}".format),
    ("prompt", "files", lambda odd: ["a.py", odd]),
    ("reply", "message", str), ("reply", "answers", lambda odd: [["a"], ["b", odd]]),
    ("remove", "path", "/{}".format), ("remove", "rescue_to", "/{}".format),
]


@pytest.fixture
def client(tmp_path: Path, runtime_dir: Path, jp_asyncio_loop: Any) -> Any:
    settings = OcmanSettings(
        data_dir=str(tmp_path / "ocman"), runtime_dir=str(runtime_dir / "o"), opencode_command="/no/opencode")
    made = InProcessClient(local_host(settings))
    yield made
    jp_asyncio_loop.run_until_complete(made.close())


@pytest.mark.parametrize("odd", ODD, ids=IDS)
@pytest.mark.parametrize("verb", SESSION)
async def test_an_odd_session_id_is_nobodys(client: Any, verb: str, odd: str) -> None:
    with pytest.raises(errors.NoSuchSession):
        await SESSION[verb](client, client._host, f"ses_{odd}")


@pytest.mark.parametrize("odd", ODD, ids=IDS)
async def test_an_odd_ask_id_is_nobodys(client: Any, odd: str) -> None:
    with pytest.raises(errors.NotFound):
        await client.reply(f"per_{odd}", {"reply": "once"})


@pytest.mark.parametrize("odd", ODD, ids=IDS)
@pytest.mark.parametrize(("what", "field", "form"), WORDS, ids=[f"{one[0]}-{one[1]}" for one in WORDS])
async def test_odd_text_in_a_request_is_told_by_its_field(
    client: Any, what: str, field: str, form: Callable[[str], Any], odd: str
) -> None:
    verb, body = FIELDS[what]
    place = ["ses_1"] if verb == "prompt" else ["per_1"] if verb == "reply" else []
    with pytest.raises(errors.InvalidRequest) as caught:
        await getattr(client, verb)(*place, {**body, field: form(odd)})
    assert caught.value.details == {"field": field}
    assert caught.value.message == f"{field}: " + ("holds a NUL character" if "\0" in odd else "is not UTF-8")


@pytest.mark.parametrize("odd", ODD, ids=IDS)
async def test_an_odd_request_id_of_a_fork(client: Any, odd: str) -> None:
    with pytest.raises(errors.InvalidRequest) as caught:
        await client._host.sessions.fork("ses_1", None, odd)
    assert caught.value.details == {"field": "request_id"}


@pytest.mark.parametrize("odd", ODD, ids=IDS)
async def test_an_odd_place_is_none(client: Any, repository: Callable[..., Path], odd: str) -> None:
    root = str(repository())
    host = client._host
    for call in (client.ensure, client.stop, client.restart, client.worktrees, client.removal, client.sessions,
                 host.diffs.worktree):
        with pytest.raises((errors.NoSuchDirectory, errors.NoSuchWorktree, errors.InvalidRequest)):
            await call(f"{root}/{odd}")
    with pytest.raises(errors.NoBase):
        await host.diffs.worktree(root, odd)


async def test_a_repository_whose_path_is_not_utf8_is_refused(client: Any, repository: Callable[..., Path]) -> None:
    root = str(repository("r\udcff", {}))
    host = client._host
    for call in (host.worktrees.list, host.sessions.list, host.instances.ensure):
        with pytest.raises(errors.InvalidFolder, match="not UTF-8") as caught:
            await call(root)
        assert caught.value.details["path"].endswith("/r\\xff")
