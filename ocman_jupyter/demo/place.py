"""The demo's folder: the sample project, and state of its own, so that nothing of the user's is touched."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ocman_jupyter.errors import OpenCodeMissing
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.setup import find_opencode

from .model import opencode_environment
from .provider import credentials_file, home
from .sample import NAME

MARK = "OCMAN_DEMO_FOLDER"
"""Set in the environment of every process of the demo."""

# Whatever is set here would lead the demo's Jupyter, git or OpenCode to the user's own.
_FOREIGN = (
    "GIT_", "TMUX", "JPY_", "JUPYTERHUB_", "JUPYTER_TOKEN", "JUPYTER_CONFIG_PATH", "OPENCODE_SERVER_"
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where everything of one demo is."""

    folder: Path

    @property
    def project(self) -> Path:
        """Main checkout of the sample project."""
        return self.folder / NAME

    @property
    def state(self) -> Path:
        """Everything but the project: Jupyter's and OpenCode's own files."""
        return self.folder / ".ocman-demo"

    @property
    def lock(self) -> Path:
        """Held while a demo runs here."""
        return self.folder / ".ocman-demo.lock"

    @property
    def log(self) -> Path:
        """What Jupyter says."""
        return self.state / "jupyter.log"

    @property
    def runtime(self) -> Path:
        """Where Jupyter leaves the record of the running server."""
        return self.state / "jupyter" / "runtime"

    @property
    def xdg(self) -> dict[str, str]:
        return {f"XDG_{kind.upper()}_HOME": str(self.state / kind) for kind in ("config", "data", "state", "cache")}

    def environment(self, model_url: str | None) -> dict[str, str]:
        """The environment of the demo's processes.

        ``model_url`` is the scripted model's; without it OpenCode uses the user's configuration and
        credentials, and still keeps its sessions here.  Raises ``OpenCodeMissing``.
        """
        env = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        opencode = find_opencode(OcmanSettings.load())
        if opencode is None:
            raise OpenCodeMissing()
        # Which OpenCode is used must not depend on the settings that the demo leaves behind.
        env["PATH"] = os.pathsep.join(
            [str(Path(opencode.path).parent), str(Path(sys.executable).parent), env.get("PATH", "")]
        )
        env |= self.xdg
        jupyter = self.state / "jupyter"
        env |= {f"JUPYTER_{kind.upper()}_DIR": str(jupyter / kind) for kind in ("config", "data", "runtime")}
        env |= {
            "IPYTHONDIR": str(self.state / "ipython"),
            "npm_config_cache": str(self.state / "cache" / "npm"),
        }
        env[MARK] = str(self.folder)
        if model_url is None:
            env["XDG_CONFIG_HOME"] = str(home("XDG_CONFIG_HOME", ".config", os.environ))
            return env
        # Nothing of the user's configuration: the scripted model is the only one.
        env = {name: value for name, value in env.items() if not name.startswith("OPENCODE_")}
        return env | opencode_environment(model_url)

    def prepare(self, model_url: str | None) -> None:
        """Make the directories, quiet Lab's news, and let OpenCode find the user's credentials if it may."""
        for path in (self.state, self.runtime):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        overrides = self.state / "jupyter" / "config" / "labconfig" / "default_setting_overrides.json"
        overrides.parent.mkdir(parents=True, exist_ok=True)
        notification = {"fetchNews": "false", "checkForUpdates": False}
        overrides.write_text(json.dumps({"@jupyterlab/apputils-extension:notification": notification}))
        link = Path(self.xdg["XDG_DATA_HOME"]) / "opencode" / "auth.json"
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        credentials = credentials_file(os.environ)
        if model_url is None and credentials.exists():
            link.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            link.symlink_to(credentials)

    @property
    def activation(self) -> Path:
        """A file to source in a terminal: the shell command then sees what the demo's notebooks see."""
        return self.folder / "activate"

    def write_activation(self, env: Mapping[str, str]) -> None:
        """Write `activation` from the demo's environment; only this user can read it."""
        names = sorted(name for name in env if name.startswith(("JUPYTER_", "XDG_", "OPENCODE_", "IPYTHONDIR")))
        lines = ["# Source this in a terminal:  . activate", *(f"export {n}={shlex.quote(env[n])}" for n in names)]
        first = os.pathsep.join(env["PATH"].split(os.pathsep)[:2])  # OpenCode's and our own
        lines.append(f'export PATH={shlex.quote(first)}:"$PATH"')
        with open(os.open(self.activation, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write("\n".join(lines) + "\n")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def default_folder() -> Path:
    """Where the demo is kept between runs."""
    return home("XDG_DATA_HOME", ".local/share", os.environ) / "ocman-demo"
