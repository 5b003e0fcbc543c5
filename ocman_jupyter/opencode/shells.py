"""A shell for OpenCode's tools that forgets the server's password before it becomes the user's own shell.

OpenCode starts the shells of agents, of `/shell` and of terminals from ``SHELL``.  A plugin can blank the
password as well, but with any plugin configured OpenCode waits for an npm install before it answers about a
directory: seconds the first time, and more than a minute for each directory where npm has no network.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

SECRETS = ("OPENCODE_SERVER_PASSWORD", "OPENCODE_SERVER_USERNAME")
DEADLINE = 5.0
"""Seconds that the trial of a new shell may take."""

_REFUSED = frozenset({"fish", "nu"})
"""Shells that OpenCode does not give to agents; it takes bash instead."""


def forgetful_shell(environ: Mapping[str, str], directory: Path) -> str | None:
    """Path of the shell to be named in ``SHELL``; ``None``: none can be made that works here.

    It keeps the name of the user's shell, by which OpenCode knows how to speak to it.  Blocks briefly.
    """
    real = _chosen(environ)
    if real is None:
        return None
    path = directory / hashlib.sha256(os.fsencode(real)).hexdigest()[:8] / os.path.basename(real)
    quoted = shlex.quote(real)
    script = f'#!/bin/sh\nunset {" ".join(SECRETS)}\nexport SHELL={quoted}\nexec {quoted} "$@"\n'
    try:
        _write(path, os.fsencode(script))
        done = subprocess.run(
            [str(path), "-c", f'printf %s "${{{SECRETS[0]}-forgotten}}"'],
            env={"PATH": environ.get("PATH", os.defpath), SECRETS[0]: "known"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=DEADLINE,
            check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return str(path) if done.returncode == 0 and done.stdout == b"forgotten" else None


def _chosen(environ: Mapping[str, str]) -> str | None:
    """The shell that OpenCode would take."""
    shell = environ.get("SHELL", "")
    refused = os.path.basename(shell).lower() in _REFUSED
    if not refused and os.path.isabs(shell) and os.path.isfile(shell):
        return shell
    bash = shutil.which("bash", path=environ.get("PATH"))
    return bash or ("/bin/sh" if os.path.isfile("/bin/sh") else None)


def _write(path: Path, script: bytes) -> None:
    if path.is_file() and path.read_bytes() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o700)
    with open(handle, "wb") as file:
        file.write(script)
    os.replace(new, path)
