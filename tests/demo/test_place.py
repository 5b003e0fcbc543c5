"""The demo's own state, and whose model it uses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ocman_jupyter.demo.place import MARK, Place
from ocman_jupyter.demo.provider import KEYS, configured_provider
from ocman_jupyter.errors import OpenCodeMissing

URL = "http://127.0.0.1:1/v1"


@pytest.fixture
def opencode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ``opencode`` on PATH that only says its version."""
    binary = tmp_path / "bin" / "opencode"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\necho 1.18.33\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
    return binary


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "demo")


def test_every_state_is_below_the_folder(place: Place, opencode: Path) -> None:
    env = place.environment(URL)
    for kind in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "JUPYTER_DATA_DIR",
                 "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):  # fmt: skip
        assert place.folder in Path(env[kind]).parents, kind
    assert env[MARK] == str(place.folder)


def test_the_scripted_model_comes_with_none_of_the_users_opencode_settings(
    place: Place, opencode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENCODE_CONFIG",
        "OPENCODE_SERVER_PASSWORD",
        "OPENCODE_PERMISSION",
        "GIT_DIR",
        "JUPYTER_TOKEN",
    ):
        monkeypatch.setenv(name, "the user's")
    env = place.environment(URL)
    assert "the user's" not in env.values()
    assert json.loads(env["OPENCODE_CONFIG_CONTENT"])["enabled_providers"] == ["scripted"]


def test_the_users_own_model_is_used_with_sessions_kept_apart(
    place: Place, opencode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    credentials = Path(os.environ["XDG_DATA_HOME"]) / "opencode" / "auth.json"
    credentials.parent.mkdir(parents=True)
    credentials.write_text('{"anthropic": {}}')
    env = place.environment(None)
    place.prepare(None)
    assert env["ANTHROPIC_API_KEY"] == "secret"
    assert env["XDG_CONFIG_HOME"] == os.environ["XDG_CONFIG_HOME"]
    assert "OPENCODE_CONFIG_CONTENT" not in env
    linked = Path(env["XDG_DATA_HOME"]) / "opencode" / "auth.json"
    assert linked.resolve() == credentials.resolve()
    place.prepare(URL)
    assert not linked.exists()
    assert credentials.exists()


def test_an_opencode_that_is_not_there_is_said(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OpenCodeMissing):
        place.environment(URL)


def test_the_demo_uses_the_opencode_that_setup_installed(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    private = Path(os.environ["JUPYTER_DATA_DIR"]) / "ocman" / "opencode" / "node_modules" / ".bin"
    private.mkdir(parents=True)
    (private / "opencode").write_text("#!/bin/sh\necho 1.18.33\n")
    (private / "opencode").chmod(0o755)
    (private.parent / "opencode-ai").mkdir()
    (private.parent / "opencode-ai" / "package.json").write_text('{"version": "1.18.33"}')
    assert place.environment(URL)["PATH"].split(os.pathsep)[0] == str(private)


def test_no_provider_is_none() -> None:
    assert configured_provider() is None


@pytest.mark.parametrize("text", ['{"model": "x/y"}', '// mine\n{"provider" : {"x": {}}}'])
def test_a_provider_in_the_configuration_is_found(text: str) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "opencode" / "opencode.jsonc"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert configured_provider() == str(file)


def test_a_key_and_a_login_are_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    login = Path(os.environ["XDG_DATA_HOME"]) / "opencode" / "auth.json"
    login.parent.mkdir(parents=True)
    login.write_text("{}")
    assert configured_provider() is None
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert configured_provider() == "OPENAI_API_KEY"
    login.write_text('{"anthropic": {"type": "api"}}')
    assert configured_provider() == str(login)
    login.write_text("broken")
    assert configured_provider() == "OPENAI_API_KEY"
