"""The environment of a launch: the user's own, less what must not leak, plus seed and secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from . import permissions
from .foreign import parse
from .permissions import Warnings

LAUNCH_ID = "OCMAN_LAUNCH_ID"
"""Names the launch that a process stems from: how a launch that was cut short is known again."""
CONTENT = "OPENCODE_CONFIG_CONTENT"
PASSWORD = "OPENCODE_SERVER_PASSWORD"
USERNAME = "OPENCODE_SERVER_USERNAME"
PLUGIN = Path(__file__).with_name("plugin") / "hide_password.mjs"
"""Blanks the password in OpenCode's shells where no forgetful shell can be made: see shells.py."""

_DROPPED_PREFIXES = ("GIT_", "TMUX", "JUPYTERHUB_", "JPY_")
_DROPPED = frozenset({
    "JUPYTER_TOKEN",
    "OPENCODE", "OPENCODE_PID",  # of an OpenCode that we may run inside of
    "PWD", "OLDPWD", "SHLVL", "_",
})


def launch_environment(
    environ: Mapping[str, str],
    *,
    worktrees_root: str,
    launch_id: str,
    username: str,
    password: str,
    shell: str | None,
    disable_project_config: bool = False,
) -> tuple[dict[str, str], Warnings]:
    """All variables of a launch, and what the user should know about them.

    ``shell``: one that forgets the password; without it our plugin has to hide that.
    """
    result = {
        name: value for name, value in environ.items()
        if name not in _DROPPED and not name.startswith(_DROPPED_PREFIXES)
    }
    warnings: Warnings = []
    seeded, said = permissions.seed(worktrees_root, environ.get(permissions.VARIABLE))
    warnings += said
    if seeded is not None:
        result[permissions.VARIABLE] = seeded
    if shell is not None:
        result["SHELL"] = shell
    else:
        result[CONTENT], said = with_plugin(environ.get(CONTENT))
        warnings += said
        if environ.get("OPENCODE_PURE", "").lower() in ("1", "true"):
            warnings.append(("password_not_hidden", "OPENCODE_PURE keeps out the plugin that hides "
                             "OpenCode's password from agents."))
    if disable_project_config:
        result["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    result.update({LAUNCH_ID: launch_id, USERNAME: username, PASSWORD: password})
    return result, warnings


def with_plugin(content: str | None) -> tuple[str, Warnings]:
    """The user's inline configuration (JSON with comments) with our plugin after theirs.

    OpenCode joins the plugins of all its configurations, so this takes nobody's place.  A value that is not
    understood stays as it is: OpenCode has to say what is wrong with it.
    """
    config: object = {}
    if content is not None and content.strip():
        try:
            config = _parse(content)
        except ValueError:
            config = None
    plugins = config.get("plugin", []) if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(plugins, list):
        return content or "", [("password_not_hidden", f"{CONTENT} is not valid, so the plugin that hides "
                                "OpenCode's password from agents could not be added.")]
    ours = PLUGIN.as_uri()
    return json.dumps({**config, "plugin": [*(one for one in plugins if one != ours), ours]}), []


def _parse(content: str) -> object:
    try:
        return parse(content)
    except ValueError:
        import json5

        return parse(content, json5.loads)
