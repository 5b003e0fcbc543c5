"""What differs in the worktrees of this machine."""

from __future__ import annotations

from ...git.compare import BASE, HEAD, Compare
from ...git.records import Diff
from .parts import Parts
from .sessions import Sessions


class Diffs:
    """Nobody shares the look of another: it may have begun before the last change."""

    def __init__(self, parts: Parts, sessions: Sessions) -> None:
        self._compare = Compare(parts.git, parts.worktrees)
        self._sessions = sessions

    async def worktree(self, path: str, against: str = BASE) -> Diff:
        """See ``git.compare.Compare.diff``, also for what it raises."""
        return await self._compare.diff(path, against)

    async def session(self, session_id: str) -> Diff:
        """Raises also `NoSuchSession`.  Asks no OpenCode."""
        repository, _ = await self._sessions.workplace(session_id)
        main = repository.toplevel == repository.root
        return await self._compare.diff(repository.toplevel, HEAD if main else BASE)
