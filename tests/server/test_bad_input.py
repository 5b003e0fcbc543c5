"""Malformed and oversized requests on every route: a typed error that names the field, never a 500."""

from __future__ import annotations

import json

import pytest

from ocman_jupyter.server.openapi import operations

SERVED = [
    (verb.upper(), address.replace("{id}", "ses_1"), served)
    for address, verb, served in operations()
    if address != "events"
]
NAMES = [f"{verb} {address}" for verb, address, _ in SERVED]
WITH_BODY = [one for one in SERVED if one[2].body is not None]
WITH_BODY_NAMES = [f"{verb} {address}" for verb, address, _ in WITH_BODY]

BROKEN = {
    "no JSON": b"{",
    "two values": b"{} {}",
    "a list": b"[]",
    "a text": b'"x"',
    "a number": b"1",
    "null": b"null",
    "not UTF-8": b'{"directory": "\xff"}',
    "UTF-16": "{}".encode("utf-16"),
    "a lone surrogate": b'{"directory": "\\ud800"}',
    "a NUL": b'{"directory": "/a\\u0000b"}',
    "a NUL in a name": b'{"a\\u0000": 1}',
    "very deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "very deep list": b'{"a":' + b"[" * 40_000 + b"]" * 40_000 + b"}",
    "not a number": b'{"directory": NaN}',
    "an enormous number": b'{"directory": ' + b"9" * 20_000 + b"}",
    "an unknown field": b'{"surprise": 1}',
    "an empty name": b'{"": 1}',
    "binary": bytes(range(256)),
}


@pytest.fixture
def ocman_settings():
    return {"max_body_bytes": 100_000}


@pytest.mark.parametrize("verb,address,served", WITH_BODY, ids=WITH_BODY_NAMES)
async def test_broken_bodies_are_refused_on_every_route(ask, told, machine, verb, address, served):
    for name, body in BROKEN.items():
        response = await ask(verb, address, raw=body)
        assert response.code == 400, (name, response.body)
        error = told(response)
        assert set(error) == {"code", "message", "hint", "details"}
        assert error["code"] == "invalid_request", name
        assert error["message"], name
    assert machine.calls == []


@pytest.mark.parametrize("verb,address,served", WITH_BODY, ids=WITH_BODY_NAMES)
async def test_every_field_is_strict_and_named_when_it_is_wrong(ask, told, machine, verb, address, served):
    right = {
        "directory": "/r",
        "path": "/w",
        "branch": "b",
        "title": "t",
        "text": "t",
        "command": "c",
        "name": "n",
    }
    base = {name: right[name] for name, field in served.body.model_fields.items() if field.is_required()}
    for field in served.body.model_fields:
        for wrong in ({"a": 1}, 3.5):
            response = await ask(verb, address, {**base, field: wrong})
            assert response.code == 400, (field, wrong)
            error = told(response)
            assert error["details"]["field"].split(".")[0] == field
            assert field in error["message"]
    for field in base:
        missing = {name: value for name, value in base.items() if name != field}
        response = await ask(verb, address, missing)
        assert (response.code, told(response)["details"]["field"]) == (400, field)
    response = await ask(verb, address, {**base, "surprise": 1})
    assert (response.code, told(response)["details"]["field"]) == (400, "surprise")
    assert machine.calls == []


@pytest.mark.parametrize("verb,address,served", SERVED, ids=NAMES)
async def test_unknown_and_malformed_parameters_are_refused(
    http_server_client, jp_base_url, jp_auth_header, told, machine, verb, address, served
):
    async def fetch(query):
        return await http_server_client.fetch(
            f"{jp_base_url}api/ocman/{address}?{query}",
            method=verb,
            headers=jp_auth_header,
            raise_error=False,
            body=b"{}" if verb in ("POST", "PATCH") else None,
        )

    wrong = [("surprise=1", "surprise"), ("surprise=", "surprise"), ("host2=x", "host2"), ("%00=1", "\x00")]
    for name in served.query.model_fields:
        wrong += [(f"{name}={value}", name) for value in ("%ff", "a%00b", f"x&{name}=y")]
    for query, field in wrong:
        response = await fetch(query)
        assert (response.code, told(response)["details"]["field"]) == (400, field), query
    assert machine.calls == []


async def test_broken_activity_parameter_is_answered(http_server_client, jp_base_url, jp_auth_header):
    """Jupyter reads `no_track_activity` when the answer is on its way."""
    address = f"{jp_base_url}api/ocman/asks?no_track_activity=%ff"
    response = await http_server_client.fetch(address, headers=jp_auth_header, raise_error=False)
    assert response.code == 200


@pytest.mark.parametrize(
    "address,query,field",
    [
        ("worktrees", {}, "directory"),
        ("worktrees", {"directory": "relative"}, "directory"),
        ("worktrees", {"directory": ""}, "directory"),
        ("worktrees", {"directory": "/" + "x" * 5000}, "directory"),
        ("worktrees", {"directory": "/r", "changes": "yes"}, "changes"),
        ("worktrees", {"directory": "/r", "changes": "1"}, "changes"),
        ("worktrees/removal", {"path": "/w", "delete_branch": "True"}, "delete_branch"),
        ("sessions", {}, "directory"),
        ("sessions", {"directory": "/r", "project": "p"}, "directory"),
        ("sessions/ses_1/messages", {"limit": "0"}, "limit"),
        ("sessions/ses_1/messages", {"limit": "-1"}, "limit"),
        ("sessions/ses_1/messages", {"limit": "1e3"}, "limit"),
        ("sessions/ses_1/messages", {"limit": "99999999999999999999"}, "limit"),
        ("sessions/ses_1/messages", {"before": ""}, "before"),
        ("worktrees/diff", {"against": "HEAD"}, "path"),
        ("worktrees/diff", {"path": "w"}, "path"),
        ("worktrees/diff", {"path": "/w", "against": ""}, "against"),
        ("worktrees/diff", {"path": "/w", "against": "x" * 5000}, "against"),
        ("sessions/ses_1/files", {"limit": "0"}, "limit"),
        ("sessions/ses_1/files", {"limit": "201"}, "limit"),
        ("sessions/ses_1/files", {"query": "x" * 201}, "query"),
    ],
)
async def test_wrong_parameters_are_named(ask, told, machine, address, query, field):
    response = await ask("GET", address, params=query)
    assert (response.code, told(response)["details"]["field"]) == (400, field)
    assert machine.calls == []


@pytest.mark.parametrize(
    "address,body,field",
    [
        ("sessions", {}, "directory"),
        ("sessions", {"directory": "/r", "project": "p"}, "directory"),
        ("sessions", {"directory": "r"}, "directory"),
        ("worktrees", {"directory": "/r", "branch": "b", "session": "many"}, "session"),
        ("worktrees", {"directory": "/r", "branch": "b", "new_branch": "yes"}, "new_branch"),
        ("worktrees", {"directory": "/r", "branch": "b", "request_id": ""}, "request_id"),
        ("asks/per_1/reply", {}, "reply"),
        ("asks/per_1/reply", {"reply": "maybe"}, "reply"),
        ("asks/per_1/reply", {"reply": "once", "answers": [["a"]]}, "reply"),
        ("asks/per_1/reply", {"answers": ["a"]}, "answers.0"),
        ("sessions/ses_1/prompt", {"text": ""}, "text"),
        ("sessions/ses_1/prompt", {"text": "x", "files": [1]}, "files.0"),
    ],
)
async def test_wrong_fields_are_named(ask, told, machine, address, body, field):
    response = await ask("POST", address, body)
    assert (response.code, told(response)["details"]["field"]) == (400, field)
    assert machine.calls == []


async def test_secrets_in_a_refused_body_are_not_repeated(ask, machine):
    response = await ask("POST", "ensure", {"directory": {"password": "hunter2"}})
    assert response.code == 400
    assert b"hunter2" not in response.body


@pytest.mark.parametrize("verb,address,served", SERVED, ids=NAMES)
async def test_oversized_bodies_are_refused_on_every_route(ask, told, machine, verb, address, served):
    response = await ask(verb, address, raw=json.dumps({"directory": "/" + "x" * 200_000}).encode())
    assert response.code == 413, response.body
    assert told(response)["code"] == "invalid_request"
    assert told(response)["details"]["limit"] == 100_000
    assert machine.calls == []


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "application/json; charset=latin1",
        "\xe9",
        "",
    ],
)
async def test_odd_content_types_never_give_a_500(ask, told, kind):
    for body in (b'{"directory": "/r"}', b"--x\r\nbroken", b"a=b&c"):
        response = await ask("POST", "ensure", raw=body, headers={"Content-Type": kind})
        assert response.code in (200, 400), (kind, body, response.body)
        if response.code == 400:
            assert told(response)["code"] == "invalid_request"
