"""Every route does what the contract says, with the right call on the host."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from tornado.simple_httpclient import HTTPTimeoutError

from ocman_jupyter.hosts.host import PromptRequest, ReplyRequest, SessionRequest, WorktreeRequest

INSTANCE = {
    "url", "port", "repo_root", "tmux_session", "launched", "owner", "permission_seeded", "opencode_version",
    "pid",
}  # fmt: skip

WORKTREES = {"repo_root", "default_base", "worktrees", "sessions_elsewhere"}

DIFF = {"files", "truncated", "against"}

REMOVED = {"removed", "branch_deleted", "rescued"}

CAPABILITIES = {
    "version", "host", "worktree_sessions", "missing", "git", "tmux", "opencode", "launcher", "sandbox",
    "hosts",
}  # fmt: skip

ROUTES = [
    # method, address, query, body, status, keys of the answer, call on the host
    ("GET", "capabilities", {}, None, 200, CAPABILITIES, ("capabilities", ())),
    ("GET", "doctor", {"host": "local"}, None, 200, {"checks"}, ("doctor", ())),
    ("POST", "ensure", {}, {"directory": "/r"}, 200, INSTANCE, ("ensure", ("/r",))),
    ("GET", "instances", {}, None, 200, {"instances"}, ("instances", ())),
    ("POST", "instances/stop", {}, {"directory": "/r"}, 200, {"stopped"}, ("stop", ("/r", False))),
    ("POST", "instances/restart", {}, {"directory": "/r", "force": True}, 200, INSTANCE,
     ("restart", ("/r", True))),
    ("GET", "worktrees", {"directory": "/r"}, None, 200, WORKTREES, ("worktrees", ("/r", True))),
    ("GET", "worktrees", {"directory": "/r", "changes": "false"}, None, 200, WORKTREES,
     ("worktrees", ("/r", False))),
    ("GET", "worktrees/removal", {"path": "/w", "delete_branch": "true"}, None, 200, {"reasons", "safe"},
     ("removal", ("/w", True))),
    ("GET", "worktrees/diff", {"path": "/w"}, None, 200, DIFF, ("diff", ("/w", "base"))),
    ("GET", "worktrees/diff", {"path": "/w", "against": "v1 é"}, None, 200, DIFF, ("diff", ("/w", "v1 é"))),
    ("DELETE", "worktrees", {}, {"path": "/w", "accept": ["ignored"]}, 200, REMOVED, None),
    ("DELETE", "worktrees", {"host": "local"}, {"path": "/w"}, 200, REMOVED, None),
    ("GET", "sessions", {"directory": "/r"}, None, 200, {"sessions", "hidden"}, ("sessions", ("/r",))),
    ("POST", "sessions", {}, {"directory": "/r", "title": "t", "request_id": "q"}, 201, None,
     ("create_session", (SessionRequest(directory="/r", title="t", request_id="q"),))),
    ("GET", "sessions/ses_1", {}, None, 200, None, ("get", ("ses_1",))),
    ("PATCH", "sessions/ses_1", {}, {"title": "new"}, 200, None, ("rename", ("ses_1", "new"))),
    ("DELETE", "sessions/ses_1", {}, None, 200, {"removed"}, ("delete", ("ses_1",))),
    ("GET", "sessions/ses_1/messages", {"limit": "7", "before": "msg_9"}, None, 200, {"messages", "next"},
     ("messages", ("ses_1", 7, "msg_9"))),
    ("GET", "sessions/ses_1/todos", {}, None, 200, {"todos"}, ("todos", ("ses_1",))),
    ("GET", "sessions/ses_1/diff", {}, None, 200, DIFF, ("session_diff", ("ses_1",))),
    ("GET", "sessions/ses_1/options", {}, None, 200, {"agents", "models", "commands", "default_model"},
     ("options", ("ses_1",))),
    ("GET", "sessions/ses_1/files", {}, None, 200, {"files"}, ("files", ("ses_1", "", 50))),
    ("GET", "sessions/ses_1/files", {"query": "ldr", "limit": "7"}, None, 200, {"files"},
     ("files", ("ses_1", "ldr", 7))),
    ("POST", "sessions/ses_1/prompt", {}, {"text": "go", "files": ["a.py"]}, 202, {"queued"},
     ("prompt", ("ses_1", PromptRequest(text="go", files=["a.py"])))),
    ("POST", "sessions/ses_1/shell", {}, {"command": "ls"}, 202, {"accepted"}, ("shell", ("ses_1", "ls"))),
    ("POST", "sessions/ses_1/command", {}, {"name": "init", "arguments": "a b"}, 202, {"accepted"},
     ("command", ("ses_1", "init", "a b"))),
    ("POST", "sessions/ses_1/abort", {}, None, 200, {"aborted"}, ("abort", ("ses_1",))),
    ("POST", "sessions/ses_1/fork", {}, {"message_id": "msg_1", "request_id": "q"}, 201, None,
     ("fork", ("ses_1", "msg_1", "q"))),
    ("POST", "sessions/ses_1/summarize", {}, None, 202, {"accepted"}, ("summarize", ("ses_1",))),
    ("GET", "asks", {}, None, 200, {"asks"}, ("asks", ())),
    ("POST", "asks/per_1/reply", {}, {"reply": "once"}, 200, {"replied"},
     ("reply", ("per_1", ReplyRequest(reply="once")))),
]  # fmt: skip


@pytest.mark.parametrize(
    "method,address,query,body,status,keys,call", ROUTES, ids=[f"{r[0]} {r[1]} {r[2]}" for r in ROUTES]
)
async def test_route_answers_as_the_contract_says(
    ask, told, machine, method, address, query, body, status, keys, call
):
    response = await ask(method, address, body, params=query)
    assert response.code == status, response.body
    answer = told(response)
    assert keys is None or set(answer) == keys
    if call is not None:
        assert call in machine.calls


async def test_worktree_that_was_made_is_201_and_a_reused_one_200(ask, told, machine):
    made = await ask("POST", "worktrees", {"directory": "/r", "branch": "b", "request_id": "q1"})
    assert made.code == 201
    assert (
        "create_worktree",
        (WorktreeRequest(directory="/r", branch="b", request_id="q1"),),
    ) in machine.calls
    assert {
        "session_id",
        "worktree_path",
        "branch",
        "repo_root",
        "host",
        "base",
        "reused",
        "branch_existed",
        "carried",
        "setup",
        "inherited_permissions",
        "session_reused",
        "prompt_sent",
        "warnings",
        "session",
    } == set(told(made))
    assert (
        await ask("POST", "worktrees", {"directory": "/r", "branch": "b", "new_branch": False})
    ).code == 200


async def test_dry_run_only_plans(ask, told, machine):
    response = await ask("POST", "worktrees", {"directory": "/r", "branch": "b", "dry_run": True})
    assert response.code == 200
    assert set(told(response)) == {"plan"}
    assert [name for name, _ in machine.calls if name in ("plan", "create_worktree")] == ["plan"]


async def test_unknown_host_is_an_error_and_never_this_machine(ask, told, machine):
    for method, address, query, body in [
        ("GET", "worktrees", {"directory": "/r", "host": "far"}, None),
        ("POST", "ensure", {}, {"directory": "/r", "host": "far"}),
        ("DELETE", "worktrees", {"host": "far"}, {"path": "/w"}),
        ("DELETE", "worktrees", {}, {"path": "/w", "host": "far"}),
        ("DELETE", "sessions/ses_1", {"host": "far"}, None),
        ("POST", "sessions/ses_1/prompt", {}, {"text": "x", "host": "far"}),
        ("GET", "asks", {"host": "far"}, None),
    ]:
        response = await ask(method, address, body, params=query)
        assert (response.code, told(response)["code"]) == (404, "no_such_host"), (method, address)
    assert [name for name, _ in machine.calls if name != "subscribe"] == []


async def test_host_named_differently_in_query_and_body_is_refused(ask, told):
    response = await ask("DELETE", "worktrees", {"path": "/w", "host": "local"}, params={"host": "far"})
    assert (response.code, told(response)["details"]["field"]) == (400, "host")


async def test_what_the_request_asks_is_checked_in_the_order_of_the_contract(ask, told):
    """Shape, then host, then the rest."""
    response = await ask("POST", "ensure", {"directory": "relative", "host": "far"})
    assert told(response)["code"] == "invalid_request"
    response = await ask("GET", "sessions", params={"project": "p", "host": "far"})
    assert told(response)["code"] == "no_such_host"
    response = await ask("GET", "sessions", params={"project": "p"})
    assert told(response)["code"] == "no_such_project"
    response = await ask("POST", "sessions/a%2Fb/prompt", {"text": "x", "host": "far"})
    assert told(response)["code"] == "no_such_host"


@pytest.mark.parametrize("name", ["a.b", "a b", "é", "x" * 300, "..", "%00", "a%2Fb"])
async def test_odd_session_id_is_no_session_and_never_reaches_the_host(jp_fetch, machine, name):
    address = name if "%" in name else quote(name)
    response = await jp_fetch("api", "ocman", "sessions", address, raise_error=False)
    assert response.code == 404, response.body
    assert not [call for call in machine.calls if call[0] == "get"]


async def test_other_addresses_and_methods_answer_in_json(ask, told, jp_fetch):
    for method, address, status in [
        ("GET", "nothing", 404),
        ("POST", "projects", 404),
        ("GET", "worktrees/x", 404),
        ("DELETE", "sessions/a/b/c", 404),
        ("GET", "ensure", 405),
        ("PUT", "worktrees", 405),
        ("PATCH", "asks", 405),
    ]:
        body = {} if method in ("POST", "PUT", "PATCH") else None
        response = await ask(method, address, body)
        assert (response.code, told(response)["code"]) == (status, "not_found"), (method, address)
    beside = await jp_fetch("api", "ocmanx", raise_error=False)
    assert beside.code == 404


async def test_jupyterlabs_own_query_parameters_are_accepted(ask, jp_serverapp):
    token = jp_serverapp.identity_provider.token
    for query in ({"1767323045000": ""}, {"token": token}, {"_xsrf": "x"}, {"no_track_activity": "1"}):
        assert (await ask("GET", "asks", params=query)).code == 200, query
    assert (await ask("GET", "asks", params={"1767323045000": "x"})).code == 400


async def test_a_path_that_is_not_utf8_travels(ask, machine):
    machine.known["ses_1"] = machine.known["ses_1"].model_copy(update={"directory": "/r/\udcff"})
    response = await ask("GET", "sessions/ses_1")
    assert response.code == 200
    assert b"\\udcff" in response.body


async def test_client_that_goes_away_does_not_cancel_a_create(ask, machine):
    machine.hold = asyncio.Event()
    with pytest.raises(HTTPTimeoutError):
        await ask("POST", "worktrees", {"directory": "/r", "branch": "b"}, request_timeout=0.5)
    assert [name for name, _ in machine.calls if name == "create_worktree"]
    ended = asyncio.Event()
    finish = machine.known.get

    def get(name):  # the last thing that the create does
        ended.set()
        return finish(name)

    machine.known = type("Known", (dict,), {"get": staticmethod(get)})(machine.known)
    machine.hold.set()
    await asyncio.wait_for(ended.wait(), 5)
