"""Login and authorization on every route, origin and XSRF as Jupyter does them."""

from __future__ import annotations

import json
import warnings

import pytest
from jupyter_server.auth import Authorizer
from jupyter_server.utils import JupyterServerAuthWarning
from tornado.httpclient import HTTPClientError

from ocman_jupyter.server.openapi import VERBS, operations
from ocman_jupyter.server.routes import ROUTES, handlers

SERVED = [(verb.upper(), address.replace("{id}", "ses_1"), served) for address, verb, served in operations()]
NAMES = [f"{verb} {address}" for verb, address, _ in SERVED]

ACTIONS = {
    "execute": {
        "POST ensure",
        "POST instances/restart",
        "POST worktrees",
        "POST sessions",
        "POST sessions/ses_1/prompt",
        "POST sessions/ses_1/shell",
        "POST sessions/ses_1/command",
    }
}


def test_every_verb_of_every_handler_is_an_operation():
    """A verb without `operation` would have neither login nor authorization."""
    for address, handler in ROUTES:
        own = [verb for verb in VERBS if verb in vars(handler)]
        assert own, address
        for verb in own:
            assert hasattr(getattr(handler, verb), "operation"), f"{verb} {address}"
        assert handler.auth_resource == "ocman"


def test_the_server_finds_no_route_without_a_login(jp_serverapp):
    with warnings.catch_warnings():
        warnings.simplefilter("error", JupyterServerAuthWarning)
        jp_serverapp.web_app.add_handlers(".*$", handlers())


@pytest.mark.parametrize("verb,address,served", SERVED, ids=NAMES)
async def test_without_a_login_nothing_is_done(jp_fetch, machine, verb, address, served):
    response = await jp_fetch(
        "api",
        "ocman",
        *address.split("/"),
        method=verb,
        headers={"Authorization": "token wrong"},
        body=b"{}" if verb in ("POST", "PATCH") else None,
        raise_error=False,
    )
    assert response.code in (401, 403)
    assert json.loads(response.body)["code"] == "unauthorized"
    assert machine.calls == []


class Denies(Authorizer):
    """Writes down what it is asked, and denies."""

    asked: list[tuple[str, str]] = []

    def is_authorized(self, handler, user, action, resource):
        self.asked.append((action, resource))
        return False


@pytest.fixture
def denying(jp_server_config):
    Denies.asked = []
    jp_server_config["ServerApp"]["authorizer_class"] = Denies
    return Denies


@pytest.mark.parametrize("verb,address,served", SERVED, ids=NAMES)
async def test_without_the_authorizers_yes_nothing_is_done(denying, jp_fetch, machine, verb, address, served):
    response = await jp_fetch(
        "api",
        "ocman",
        *address.split("/"),
        method=verb,
        raise_error=False,
        body=b"{}" if verb in ("POST", "PATCH") else None,
    )
    assert response.code == 403
    assert json.loads(response.body)["code"] == "unauthorized"
    name = f"{verb} {address}"
    expected = "execute" if name in ACTIONS["execute"] else "read" if verb == "GET" else "write"
    assert denying.asked == [(expected, "ocman")]
    assert machine.calls == []


def browser(cookies, **headers):
    """Headers of a browser: a cookie login and no token."""
    return {"Authorization": "none", "Cookie": "; ".join(map("=".join, cookies.items())), **headers}


async def login(jp_fetch):
    """The cookies that a browser has after it logged in."""
    page = await jp_fetch("login", headers={"Authorization": "none"})
    first = await jp_fetch("api", "me")
    given = page.headers.get_list("Set-Cookie") + first.headers.get_list("Set-Cookie")
    return dict(one.split(";")[0].split("=", 1) for one in given)


async def test_a_cookie_login_needs_the_xsrf_header(jp_fetch, machine):
    cookies = await login(jp_fetch)

    async def post(**headers):
        return await jp_fetch(
            "api",
            "ocman",
            "ensure",
            method="POST",
            body=json.dumps({"directory": "/r"}),
            raise_error=False,
            headers=browser(cookies, **headers),
        )

    refused = await post()
    assert refused.code == 403
    assert "xsrf" in json.loads(refused.body)["message"].lower()
    assert machine.calls == []
    assert (await post(**{"X-XSRFToken": cookies["_xsrf"]})).code == 200


async def test_a_foreign_origin_is_refused(jp_fetch, machine):
    headers = browser(await login(jp_fetch), Origin="http://evil.example")
    response = await jp_fetch("api", "ocman", "asks", headers=headers, raise_error=False)
    assert response.code in (403, 404)  # Jupyter's own check
    assert json.loads(response.body)["code"] in ("unauthorized", "not_found")
    assert machine.calls == []


async def test_websocket_wants_a_login(jp_ws_fetch, machine):
    with pytest.raises(HTTPClientError) as refused:
        await jp_ws_fetch("api", "ocman", "events", headers={"Authorization": "token wrong"})
    assert refused.value.code == 403
    assert machine.subscriptions == set()


async def test_websocket_wants_the_authorizers_yes(denying, jp_ws_fetch, machine):
    with pytest.raises(HTTPClientError) as refused:
        await jp_ws_fetch("api", "ocman", "events")
    assert refused.value.code == 403
    assert denying.asked == [("read", "ocman")]


async def test_websocket_of_a_foreign_origin_is_refused(jp_fetch, jp_ws_fetch, machine):
    headers = browser(await login(jp_fetch), Origin="http://evil.example")
    with pytest.raises(HTTPClientError) as refused:
        await jp_ws_fetch("api", "ocman", "events", headers=headers)
    assert refused.value.code == 403
    assert machine.subscriptions == set()
