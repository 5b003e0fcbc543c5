"""The parts that the local host's services share: one of each per process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import InvalidFolder, NoSuchDirectory, OcmanError
from ...git.command import Git
from ...git.paths import shown
from ...git.repository import Repositories, Repository
from ...git.worktrees import Worktrees as GitWorktrees
from ...opencode.instances import Instances as OpenCodes
from ...opencode.launcher import find_opencode
from ...opencode.target import Target
from ...settings import OcmanSettings
from ...store import Store
from ..request import fault
from .records import Contexts, HandedOut, SessionNotes, TakenBack
from .requests import Requests
from .subscription import Bus


@dataclass
class Parts:
    """What knows git, what knows OpenCode, what is remembered, and who listens."""

    settings: OcmanSettings
    store: Store
    git: Git
    repositories: Repositories
    worktrees: GitWorktrees
    instances: OpenCodes
    notes: SessionNotes
    contexts: Contexts
    taken_back: TakenBack
    handed_out: HandedOut
    requests: Requests
    bus: Bus = field(default_factory=Bus)
    background: bool = False
    """Whether this process stays: then it warms up, refreshes and frees in the background."""

    @classmethod
    def make(cls, settings: OcmanSettings) -> Parts:
        store = Store(Path(settings.data_dir) / "ocman.sqlite")
        git = Git(settings)
        repositories = Repositories(git)
        return cls(
            settings=settings,
            store=store,
            git=git,
            repositories=repositories,
            worktrees=GitWorktrees(git, store, settings, repositories),
            instances=OpenCodes(settings, store),
            notes=SessionNotes(store),
            contexts=Contexts(store),
            taken_back=TakenBack(store),
            handed_out=HandedOut(store),
            requests=Requests(store, settings),
        )

    def opencode_path(self) -> str | None:
        """The OpenCode that would be launched."""
        return find_opencode(self.settings)

    async def repository(self, directory: str) -> Repository:
        """The repository that ``directory`` is in.

        Raises `NoSuchDirectory`, `NotARepository`, and `InvalidFolder` for one whose name nothing could note.
        """
        if not os.path.isabs(directory):
            raise NoSuchDirectory(
                f"{directory!r} is not an absolute path.", details={"field": "directory", "directory": directory}
            )
        found = await self.repositories.resolve(directory)
        if fault(found.common_dir):
            raise InvalidFolder(
                f"The path of this repository {fault(found.common_dir)}.", details={"path": shown(found.root)}
            )
        return found

    def target(self, repository: Repository) -> Target:
        """What OpenCode's side must know of a repository."""

        async def belongs(directory: str) -> bool:
            try:
                found = await self.repositories.resolve(directory)
            except OcmanError:
                return False
            return found.common_dir == repository.common_dir

        return Target(
            identity=repository.common_dir,
            root=repository.root,
            cwd=repository.toplevel if repository.bare else repository.root,
            worktrees_root=repository.worktrees_root,
            belongs=belongs,
        )

    async def close(self) -> None:
        """Let go of everything; what was launched lives on."""
        self.bus.close()
        await self.instances.close()
        self.worktrees.close()
        self.git.close()
        self.store.close()

