"""Which repository a directory belongs to: found once by git, then remembered and checked by a few stats."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from dataclasses import dataclass

from ocman_jupyter.errors import NoCommits, NoSuchDirectory, NotARepository
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.links import dot_git, read_line
from ocman_jupyter.git.paths import is_within

_REMEMBERED = 2000
_CONFIG = 1_000_000
# Paths may hold newlines: a known answer (true or false) stands between any two of them.
_REV_PARSE = (
    "rev-parse",
    "--is-bare-repository",
    "--is-inside-work-tree",
    "--git-common-dir",
    "--is-bare-repository",
    "--git-dir",
    "--is-bare-repository",
    "--show-toplevel",
)
_ANSWER = re.compile(
    r"\A(?P<bare>true|false)\n(?P<inside>true|false)\n(?P<common>.+?)\n(?P=bare)\n(?P<git>.+?)\n(?P=bare)\n(?P<top>.*)\Z",
    re.DOTALL,
)


@dataclass(frozen=True)
class Repository:
    """A repository as seen from one directory; all paths are real and absolute."""

    common_dir: str
    """Its identity: the real path of the git common directory."""
    root: str
    """The main checkout, or the folder of a bare repository."""
    bare: bool
    toplevel: str
    """Top of the checkout that was asked from; ``root`` when asked from inside ``.git`` or a bare folder."""
    name: str
    worktrees_root: str
    """Where our worktrees live: ``<parent of root>/.worktrees/<name>``."""
    worktrees_link: str
    """The same before links were followed."""


@dataclass(frozen=True)
class _Known:
    repository: Repository
    stamp: tuple[object, ...]


class Repositories:
    """Resolves directories.  Only what was found is remembered, never that nothing was."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[str, _Known] = {}
        self._with_commits: set[str] = set()

    async def resolve(self, directory: str) -> Repository:
        """The repository of ``directory``: a checkout, a subfolder, a link to one, or ``.git`` itself.

        Raises ``NoSuchDirectory``, ``NotARepository``, ``GitMissing``.
        """
        real, known = await self._git.disk(self._recall, directory)
        if known is not None:
            return known.repository
        repository = await self._ask(real)
        stamp = await self._git.disk(_stamp, real, repository)
        if stamp is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[real] = _Known(repository, stamp)
        return repository

    def _recall(self, directory: str) -> tuple[str, _Known | None]:
        try:
            real = os.path.realpath(directory)
            os.fsencode(real)
            if not os.path.isabs(directory) or not os.path.isdir(real):
                raise NoSuchDirectory(f"There is no directory {directory}.", details={"path": directory})
        except ValueError:  # a NUL byte, or half of a surrogate pair
            raise NoSuchDirectory(details={"path": ascii(directory)}) from None
        known = self._known.get(real)
        if known is not None and _stamp(real, known.repository) != known.stamp:
            self._known.pop(real, None)
            known = None
        return real, known

    async def _ask(self, real: str) -> Repository:
        done = await self._git.run(*_REV_PARSE, cwd=real, ok=(0, 128))
        answer = _ANSWER.match(done.text)
        if answer is None:  # not a repository, or git refuses: run again for the typed error
            await self._git.run("rev-parse", "--git-dir", cwd=real)
            raise NotARepository(f"{real} is not inside a git repository.", details={"path": real})
        top, common, git_dir = await self._git.disk(
            _real_paths, real, answer["top"] if done.code == 0 else None, answer["common"], answer["git"]
        )
        assert common is not None and git_dir is not None
        bare = answer["bare"] == "true"
        root: str | None = None
        if git_dir == common and top is not None:
            root = top
        elif git_dir != common or not bare:
            bare, root = await self._main_checkout(common)
        await self._git.disk(_refuse_lost_worktree, real, top)
        return await self._git.disk(_describe, common, root, bare, top)

    async def _main_checkout(self, common: str) -> tuple[bool, str | None]:
        """Is it bare, and where is the main checkout: asked in the common directory itself."""
        done = await self._git.run(
            "rev-parse", "--is-bare-repository", "--show-toplevel", cwd=common, ok=(0, 128)
        )
        bare, _, top = done.text.partition("\n")
        if done.code == 0 and top:  # core.worktree is set: a submodule
            return False, (await self._git.disk(_real_paths, common, top))[0]
        if bare != "true" and os.path.basename(common) == ".git":
            return False, os.path.dirname(common)
        return bare == "true", None

    async def require_commits(self, repository: Repository) -> None:
        """Raise ``NoCommits`` when no ref holds a commit."""
        if repository.common_dir in self._with_commits:
            return
        head, refs = await asyncio.gather(
            self._git.run(
                "rev-parse",
                "--quiet",
                "--verify",
                "--end-of-options",
                "HEAD^{commit}",
                cwd=repository.toplevel,
                ok=(0, 1, 128),
            ),
            self._git.run("for-each-ref", "--count=1", "--format=%(refname)", cwd=repository.common_dir),
        )
        if head.code != 0 and not refs.out.strip():
            raise NoCommits(details={"repo_root": repository.root})
        self._with_commits.add(repository.common_dir)


def _real_paths(directory: str, *said: str | None) -> tuple[str | None, ...]:
    """Paths as `rev-parse` says them, relative to where it ran, made real."""
    return tuple(
        None if path is None else os.path.realpath(os.path.join(directory, path.removesuffix("\n")))
        for path in said
    )


def _describe(common: str, root: str | None, bare: bool, top: str | None) -> Repository:
    root = root or common
    place = root
    if bare and os.path.basename(place) == ".git":
        place = os.path.dirname(place)
    parent, name = os.path.split(place)
    if bare and name.endswith(".git") and name != ".git":
        name = name[: -len(".git")]
    name = name or "root"
    link = os.path.join(parent, ".worktrees", name)
    return Repository(
        common_dir=common,
        root=root,
        bare=bare,
        toplevel=top or root,
        name=name,
        worktrees_root=os.path.realpath(link),
        worktrees_link=link,
    )


def _refuse_lost_worktree(real: str, top: str | None) -> None:
    """A folder among our worktrees that lost its ``.git`` resolves to whatever repository is around it."""
    parts = real.split(os.sep)
    if top is None or ".worktrees" not in parts:
        return
    for index in range(1, len(parts) - 2):
        parent = os.sep.join(parts[:index]) or os.sep
        if parts[index] != ".worktrees" or not is_within(parent, top):
            continue
        main = os.path.join(parent, parts[index + 1])
        if any(
            os.path.lexists(place) for place in (os.path.join(main, ".git"), f"{main}.git", f"{main}/HEAD")
        ):
            place = os.sep.join(parts[: index + 3])
            raise NotARepository(
                f"{place} lies among the worktrees of {main} but is none: its .git file is missing.",
                hint=f"Run `git -C '{main}' worktree repair`, or move the folder away.",
                details={"path": place, "outer_repository": top},
            )


def _stamp(real: str, repository: Repository) -> tuple[object, ...] | None:
    """Facts that change when ``real`` comes to belong to another repository."""
    facts: list[object] = []
    looked_at = [repository.common_dir]
    in_checkout = not is_within(real, repository.common_dir) and is_within(real, repository.toplevel)
    if in_checkout:
        looked_at.append(os.path.join(repository.toplevel, ".git"))
    try:
        for path in looked_at:
            info = os.stat(path)
            facts.append((info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode)))
            if stat.S_ISREG(info.st_mode):
                # Numbers are used again: what a worktree's link says counts too.
                admin = dot_git(repository.toplevel) or ""
                os.stat(os.path.join(admin, "HEAD"))
                facts += [admin, read_line(os.path.join(admin, "commondir"))]
        for name in ("HEAD", "objects", "refs"):  # without one of these git knows no repository there
            os.stat(os.path.join(repository.common_dir, name))
        if os.path.realpath(repository.worktrees_link) != repository.worktrees_root:
            return None
        with open(os.path.join(repository.common_dir, "config"), "rb") as file:
            # Its content, because deleting any branch writes the same once more.
            facts.append(hashlib.sha256(file.read(_CONFIG)).digest())
    except OSError:
        return None
    place = real
    while in_checkout and place != repository.toplevel:
        if os.path.lexists(os.path.join(place, ".git")):
            return None
        place = os.path.dirname(place)
    return tuple(facts)
