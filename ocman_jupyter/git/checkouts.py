"""The checkouts of a repository as git lists them, joined with what the disk shows; one git process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from ocman_jupyter.git.command import Git, GitFailed
from ocman_jupyter.git.links import dot_git, link_of, read_line
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.names import HEADS
from ocman_jupyter.git.paths import shown
from ocman_jupyter.git.records import State, Worktree
from ocman_jupyter.git.repository import Repository

_OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
_HEAD_NAMES = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_ACTIVE = ("index", "HEAD", "ORIG_HEAD", "COMMIT_EDITMSG")
INITIALIZING = "initializing"
"""The lock reason that git gives to a worktree while it is being made."""


@dataclass(frozen=True)
class Checkout:
    """One checkout, or a plain folder among our worktrees (state ``not_a_worktree``, no admin folder)."""

    path: str
    head: str | None = None
    branch: str | None = None
    is_main: bool = False
    bare: bool = False
    detached: bool = False
    locked: bool = False
    lock_reason: str | None = None
    prunable: bool = False
    state: State = "ok"
    admin: str | None = None
    """Its own git directory: ``.git/worktrees/<id>``; of the main checkout ``.git``."""
    operation: str | None = None
    in_use: frozenset[str] = field(default_factory=frozenset)
    """Branches that are not to be checked out elsewhere: its own, and the one it rebases or bisects."""
    last_activity: str | None = None


async def checkouts(git: Git, repository: Repository, branch: str | None = None) -> list[Checkout]:
    """All checkouts, the main one first (a bare folder is no checkout), then plain folders in our root.

    With ``branch`` only those that may be on it are looked at; the others are what git says of them.  Then
    there is no process where git's files tell it, and no ``head`` and ``prunable``.
    """
    if branch is not None:
        seen = await git.disk(_seen, repository, branch)
        if seen is not None:
            return seen
    done = await git.run("worktree", "list", "--porcelain", "-z", cwd=repository.toplevel, ok=(0, 129))
    end = "\0"
    if done.code == 129:  # git before 2.36 has no -z
        done = await git.run("worktree", "list", "--porcelain", cwd=repository.toplevel)
        end = "\n"
    listed = list(_parse(done.text, end))
    if not listed:
        raise GitFailed(("worktree", "list"), done)
    return await git.disk(_join, repository, listed, branch)


def record(one: Checkout, row: Made | None) -> Worktree:
    """What REST tells of a checkout, without the slow parts."""
    path = shown(one.path)
    return Worktree(
        path=path,
        name=os.path.basename(path),
        branch=shown(one.branch) if one.branch else None,
        head=one.head,
        is_main=one.is_main,
        state=one.state,
        prunable=one.prunable,
        detached=one.detached,
        locked=one.locked,
        lock_reason=shown(one.lock_reason) if one.lock_reason else None,
        made_by_ocman=row is not None and one.state != "not_a_worktree",
        base=row.base if row else None,
        changes=None,
        ahead=None,
        behind=None,
        merged="unknown",
        operation=one.operation,
        last_activity=one.last_activity,
    )


def current_branch(repository: Repository, places: list[Checkout], path: str) -> str | None:
    """The branch of the checkout at ``path``, or of a bare repository."""
    if not repository.bare or path != repository.root:
        return next((one.branch for one in places if one.path == path), None)
    line = read_line(os.path.join(repository.common_dir, "HEAD")) or ""
    name = line.removeprefix("ref: " + HEADS)
    return name if name not in (line, ".invalid") else None


def _seen(repository: Repository, branch: str) -> list[Checkout] | None:
    """The checkouts by the files of ``.git``; ``None`` when these do not tell (reftables keep no ``HEAD``)."""
    main = _by_head(repository.root, repository.common_dir)
    if main is None:
        return None
    listed = [replace(main, is_main=True, bare=repository.bare)]
    folder = os.path.join(repository.common_dir, "worktrees")
    for name in sorted(_names(folder)):
        admin = os.path.join(folder, name)
        link = read_line(os.path.join(admin, "gitdir"))
        if link is None:
            continue
        one = _by_head(os.path.dirname(os.path.join(admin, link.strip())), admin)
        if one is None:
            return None
        listed.append(one)
    return _join(repository, listed, branch)


def _by_head(path: str, admin: str) -> Checkout | None:
    head = read_line(os.path.join(admin, "HEAD"))
    if head is None or os.path.islink(os.path.join(admin, "HEAD")):
        return None
    ref = head.removeprefix("ref:").strip()
    if ref == head:
        branch = None
    elif ref.startswith(HEADS) and ref != HEADS + ".invalid":
        branch = ref[len(HEADS) :]
    else:
        return None
    reason = read_line(os.path.join(admin, "locked"))
    return Checkout(
        path=path,
        branch=branch,
        detached=branch is None,
        locked=reason is not None,
        lock_reason=(reason or "").strip() or None,
    )


def _parse(text: str, end: str) -> Iterator[Checkout]:
    first = True
    for block in text.split(end + end):
        lines = [line for line in block.split(end) if line]
        if not lines:
            continue
        facts = {}
        for line in lines:
            word, _, rest = line.partition(" ")
            facts[word] = rest
        branch = facts.get("branch")
        head = facts.get("HEAD")
        yield Checkout(
            path=facts["worktree"],
            head=head if head and head.strip("0") else None,
            branch=branch[len(HEADS) :] if branch and branch.startswith(HEADS) else branch,
            is_main=first,
            bare="bare" in facts,
            detached="detached" in facts,
            locked="locked" in facts,
            lock_reason=facts.get("locked") or None,
            prunable="prunable" in facts,
        )
        first = False


def _join(repository: Repository, listed: list[Checkout], branch: str | None) -> list[Checkout]:
    real = _RealPaths()
    admins: dict[str, str] | None = None
    found: list[Checkout] = []
    for one in listed:
        if one.is_main:
            # git names the main checkout wrongly where the git directory is not called .git
            if not (one.bare or repository.bare):
                main = replace(one, path=repository.root, prunable=False, admin=repository.common_dir)
                state: State = "ok" if os.path.isdir(main.path) else "missing"
                found.append(_with_activity(replace(main, state=state)))
            continue
        path = real.of(one.path)
        if branch is not None and one.branch not in (None, branch):
            found.append(replace(one, path=path, in_use=frozenset({one.branch})))
            continue
        if admins is None:
            admins = _admins(repository.common_dir, real)
        admin = admins.get(path)
        found.append(_with_activity(replace(one, path=path, admin=admin, state=_state(path, admin))))
    known = {one.path for one in found}
    for path in _folders(repository.worktrees_root):
        if path in known:
            continue
        admin = _moved_from(path, repository.common_dir)
        old = next((one for one in found if admin and one.admin == admin and one.state == "missing"), None)
        if old is not None:  # it was moved here: shown at this place, not as missing at the old one
            found.remove(old)
            found.append(replace(old, path=path, state="moved"))
        else:
            found.append(Checkout(path=path, state="not_a_worktree"))
    return found


class _RealPaths:
    """``realpath`` of many neighbours: their folder is resolved once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str) -> str:
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or os.path.islink(path):
            return os.path.realpath(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)


def _admins(common_dir: str, real: _RealPaths) -> dict[str, str]:
    """Admin folder by the real path of the worktree that it names."""
    admins = {}
    folder = os.path.join(common_dir, "worktrees")
    for name in _names(folder):
        admin = os.path.join(folder, name)
        link = read_line(os.path.join(admin, "gitdir"))
        if link is not None:
            admins[real.of(os.path.dirname(os.path.join(admin, link)))] = admin
    return admins


def _state(path: str, admin: str | None) -> State:
    link = dot_git(path)
    if link is not None:
        linked = admin is not None and (link == admin or os.path.realpath(link) == os.path.realpath(admin))
        return "ok" if linked else "moved"
    # no .git file (any more), a repository of its own, or rubbish
    return "not_a_worktree" if os.path.isdir(path) else "missing"


def _moved_from(path: str, common_dir: str) -> str | None:
    """The admin folder that an unlisted folder's ``.git`` file names, by name: either may have moved."""
    link = link_of(path)
    if link is None or os.path.basename(os.path.dirname(link)) != "worktrees":
        return None
    admin = os.path.join(common_dir, "worktrees", os.path.basename(link))
    return admin if os.path.isdir(admin) else None


def _folders(root: str) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _with_activity(one: Checkout) -> Checkout:
    in_use = {one.branch} if one.branch else set()
    if one.admin is None:
        return replace(one, in_use=frozenset(in_use))
    here = set(_names(one.admin))
    operation = next((word for name, word in _OPERATIONS if name in here), None)
    if operation in ("rebase", "bisect"):
        for name in _HEAD_NAMES:
            said = read_line(os.path.join(one.admin, name))
            if said:
                in_use.add(said[len(HEADS) :] if said.startswith(HEADS) else said)
    times = [_changed(os.path.join(one.admin, name)) for name in _ACTIVE if name in here]
    latest = max([_changed(os.path.join(one.admin, "logs", "HEAD")), *times])
    return replace(
        one,
        operation=operation,
        in_use=frozenset(in_use),
        last_activity=timestamp(latest) if latest else None,
    )


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
