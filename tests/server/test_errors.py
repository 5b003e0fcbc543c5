"""The one error table, faults of ours, and what must never be in a log."""

from __future__ import annotations

import logging

import pytest

from ocman_jupyter.errors import BY_CODE, OcmanError
from ocman_jupyter.server.openapi import operations, statuses
from ocman_jupyter.server.redaction import redact

CONTRACT = {
    400: {"invalid_request"},
    403: {"forbidden_path"},
    404: {
        "not_a_repository",
        "no_such_directory",
        "no_such_branch",
        "no_such_worktree",
        "no_such_session",
        "no_such_project",
        "no_such_host",
        "not_found",
    },
    409: {
        "branch_checked_out",
        "branch_name_conflict",
        "branch_exists",
        "path_conflict",
        "worktree_locked",
        "main_worktree",
        "would_lose_work",
        "session_busy",
        "directory_missing",
        "not_ours",
        "opencode_needs_password",
    },
    422: {"invalid_branch", "no_commits", "no_base", "invalid_folder"},
    423: {"index_locked"},
    502: {"opencode_error", "session_directory_mismatch"},
    503: {"git_missing", "opencode_missing", "launch_failed", "opencode_unreachable", "host_unreachable"},
    504: {"launch_timeout"},
}


@pytest.mark.parametrize("code", sorted(BY_CODE))
async def test_every_typed_error_keeps_its_status_and_details(ask, told, machine, code):
    machine.fail = BY_CODE[code]("Said so.", details={"paths": ["/a"], "odd": "\udcff"})
    response = await ask("POST", "ensure", {"directory": "/r"})
    assert response.code == BY_CODE[code].status
    assert told(response) == {
        "code": code,
        "message": "Said so.",
        "hint": BY_CODE[code].default_hint,
        "details": {"paths": ["/a"], "odd": "\udcff"},
    }


def test_statuses_are_those_of_the_contract():
    for status, codes in CONTRACT.items():
        for code in codes:
            assert BY_CODE[code].status == status, code


def test_the_description_knows_every_status_of_an_operation():
    for address, verb, served in operations():
        told = statuses(served)
        assert {400, 401, 403, 500} <= set(told), (verb, address)
        for error in served.errors:
            assert error.code in told[error.status], (verb, address)


class Broken(Exception):
    pass


async def test_a_fault_of_ours_is_a_500_that_says_nothing_and_is_logged_without_secrets(
    ask, told, machine, caplog, jp_serverapp
):
    token = jp_serverapp.identity_provider.token
    caplog.set_level(logging.DEBUG)
    machine.fail = Broken(
        f"calling http://opencode:hunter2@127.0.0.1:4096/ with OPENCODE_SERVER_PASSWORD=hunter2, "
        f"Authorization: Basic b3BlbmNvZGU6aHVudGVyMg== and {token}"
    )
    response = await ask("POST", "ensure", {"directory": "/r"})
    assert response.code == 500
    error = told(response)
    assert error["code"] == "internal"
    assert "hunter2" not in response.body.decode()
    logged = "\n".join(record.getMessage() for record in caplog.records if "failed" in record.getMessage())
    assert "Broken" in logged and "machine.py" not in error["message"]
    for secret in ("hunter2", "b3BlbmNvZGU6aHVudGVyMg", token):
        assert secret not in logged
    assert "127.0.0.1:4096" in logged  # what helps is still there


async def test_tokens_in_addresses_are_not_logged(ask, caplog, jp_serverapp):
    caplog.set_level(logging.DEBUG)
    token = jp_serverapp.identity_provider.token
    await ask("GET", "asks", params={"token": token})
    await ask("GET", "asks", params={"token": token, "surprise": "1"})
    await ask("GET", "nothing", params={"token": token})
    ours = [record.getMessage() for record in caplog.records if "/api/ocman" in record.getMessage()]
    assert ours and not [line for line in ours if token in line]


@pytest.mark.parametrize(
    "text",
    [
        "http://user:hunter2@host/x",
        "password=hunter2",
        '{"password": "hunter2"}',
        "PASSWORD: 'hunter2'",
        "OPENCODE_SERVER_PASSWORD=hunter2 opencode",
        "Authorization: Bearer hunter2hunter2",
        "api_key = hunter2",
        "?token=hunter2&x=1",
        "Cookie: hunter2",
        "token hunter2hunter2",
        "the key is hunter2",
    ],
)
def test_redaction(text):
    assert "hunter2" not in redact(text, ["hunter2"] if "key is" in text else [])


def test_redaction_keeps_what_is_no_secret():
    text = "GET /api/ocman/worktrees failed: FileNotFoundError: '/home/me/tokens/a.py' line 3"
    assert redact(text) == text


async def test_an_error_of_a_newer_host_keeps_its_code(ask, told, machine):
    class Newer(OcmanError):
        code = "something_new"
        status = 418

    machine.fail = Newer("New.")
    response = await ask("GET", "asks")
    assert (response.code, told(response)["code"]) == (418, "something_new")
