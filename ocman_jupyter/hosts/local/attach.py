"""OpenCode's own terminal screen on the one instance of a repository."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import OpenCodeMissing
from ...settings import OcmanSettings
from ..host import Progress
from .parts import Parts


@dataclass(frozen=True)
class Screen:
    """The command that shows the screen, to be run in a terminal."""

    argv: list[str]
    environment: dict[str, str] = field(repr=False)
    """What it needs beside the user's own; the password is here and nowhere else."""


async def screen(settings: OcmanSettings, directory: str, progress: Progress | None = None) -> Screen:
    """The screen on the instance that serves ``directory``, which is found or launched.

    Raises what ``ensure`` raises.
    """
    parts = Parts.make(settings)
    try:
        repository = await parts.repository(directory)
        instance, _ = await parts.instances.ensure(parts.target(repository), progress)
        name, password = instance.credentials
        environment = {}
        if password is not None:
            environment = {"OPENCODE_SERVER_USERNAME": name, "OPENCODE_SERVER_PASSWORD": password}
        # A subfolder's screen would show the sessions of that subfolder alone.
        command = parts.opencode_path()
        if command is None:  # it runs, but the program that shows its screen is not here
            raise OpenCodeMissing()
        argv = [command, "attach", instance.url, "--dir", repository.toplevel]
        return Screen(argv, environment)
    finally:
        await parts.close()
