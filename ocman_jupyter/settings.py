"""Configuration of the whole package, each setting documented where it is declared.

A Jupyter server reads ``c.OcmanSettings.… = …`` from its own configuration; the shell command and
a bare IPython read the same traits from ``jupyter_ocman_jupyter_config.py`` (or ``.json``) in
Jupyter's configuration directories, which the server reads too.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from traitlets import Bool, Enum, Float, Integer, Unicode, default
from traitlets.config import Configurable

CONFIG_NAME = "jupyter_ocman_jupyter_config"


class OcmanSettings(Configurable):
    """What can be configured.  Times are seconds, sizes are bytes."""

    data_dir = Unicode(
        help="Where lasting state is kept.  Default: Jupyter's data directory + /ocman."
    ).tag(config=True)
    runtime_dir = Unicode(
        help="Short private directory for the tmux socket and launch files (a socket path may have 107 bytes)."
    ).tag(config=True)
    git_command = Unicode("git", help="git to run: a name on PATH or a path.").tag(config=True)
    tmux_command = Unicode("tmux", help="tmux to run: a name on PATH or a path.").tag(config=True)
    opencode_command = Unicode(
        "", help="OpenCode to run.  Empty: `opencode` on PATH, else the one that `ocman-jupyter setup` installed."
    ).tag(config=True)
    instance_command = Enum(
        ["serve", "tui"], "serve", help="Form in which OpenCode is launched: `opencode serve`, or its terminal screen."
    ).tag(config=True)
    launcher = Enum(
        ["auto", "tmux", "process"], "auto",
        help="Where OpenCode runs: in tmux, or as a plain process in its own session.  auto = tmux where there is one.",
    ).tag(config=True)
    launch_timeout = Float(60.0, help="How long a launched OpenCode may take until it answers.").tag(config=True)
    probe_timeout = Float(8.0, help="How long one look at a running OpenCode may take.").tag(config=True)
    request_timeout = Float(30.0, help="How long OpenCode may take for one answer.").tag(config=True)
    disable_project_config = Bool(
        False,
        help="Launch OpenCode with OPENCODE_DISABLE_PROJECT_CONFIG=1: configuration and plugins inside the "
        "repository are not read.  Stops plugins that an agent plants, and the project's own opencode.json with them.",
    ).tag(config=True)
    warm_up = Bool(
        True,
        help="Pay OpenCode's cold start of a new worktree in the background, so that the first answer comes sooner.",
    ).tag(config=True)
    idle_dispose_after = Float(
        3600.0, help="Free OpenCode's context of a worktree that was idle this long.  0 = never."
    ).tag(config=True)
    git_processes = Integer(
        0, help="How many git processes may run at once.  0 = number of cores, at least 2."
    ).tag(config=True)
    git_timeout = Float(120.0, help="How long one reading git command may take.").tag(config=True)
    checkout_workers = Integer(0, help="Parallel workers of a checkout.  0 = number of cores.").tag(config=True)
    delta_interval = Float(0.04, help="Text that streams in is sent to pages at most this often.").tag(config=True)
    max_body_bytes = Integer(2_000_000, help="Largest request body that is read.").tag(config=True)
    max_event_bytes = Integer(16_000_000, help="Largest single event of OpenCode that is read.").tag(config=True)

    @default("data_dir")
    def _default_data_dir(self) -> str:
        from jupyter_core.paths import jupyter_data_dir

        return str(Path(jupyter_data_dir()) / "ocman")

    @default("runtime_dir")
    def _default_runtime_dir(self) -> str:
        # One per data directory: whoever shares the registry shares the tmux socket.
        tag = hashlib.sha256(os.path.realpath(self.data_dir).encode()).hexdigest()[:8]
        base = os.environ.get("XDG_RUNTIME_DIR") or ""
        if base and os.access(base, os.W_OK) and len(base) < 60:
            return os.path.join(base, f"ocman-{tag}")
        return os.path.join(tempfile.gettempdir() if len(tempfile.gettempdir()) < 60 else "/tmp",
                            f"ocman-{os.getuid()}-{tag}")

    def private_dir(self, path: str) -> Path:
        """Make ``path`` a directory that only this user can read, and return it.

        Raises ``PermissionError`` when it is a link or belongs to somebody else: in a shared
        temporary directory another user may have put it there first.
        """
        directory = Path(path)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        info = os.lstat(directory)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise PermissionError(f"{directory} does not belong to this user")
        if info.st_mode & 0o077:
            os.chmod(directory, 0o700)
        return directory

    @property
    def private_prefix(self) -> Path:
        """Where ``ocman-jupyter setup`` installs OpenCode (an npm prefix)."""
        return Path(self.data_dir) / "opencode"

    @classmethod
    def load(cls) -> OcmanSettings:
        """Settings of this user outside a Jupyter server."""
        from jupyter_core.paths import jupyter_config_path
        from traitlets.config import Config
        from traitlets.config.loader import (
            ConfigFileNotFound,
            JSONFileConfigLoader,
            PyFileConfigLoader,
        )

        config = Config()
        for directory in reversed(jupyter_config_path()):
            for loader, suffix in ((JSONFileConfigLoader, ".json"), (PyFileConfigLoader, ".py")):
                try:
                    config.merge(loader(CONFIG_NAME + suffix, path=directory).load_config())
                except ConfigFileNotFound:
                    continue
        return cls(config=config)
