"""What would be lost with a worktree: every check that fails is itself a reason."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Awaitable
from dataclasses import dataclass, field

from ocman_jupyter.errors import NoSuchWorktree, OcmanError
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.history import History
from ocman_jupyter.git.links import link_of, read_line
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.paths import same_content, shown, size_of
from ocman_jupyter.git.records import Item, Reason, Worktree
from ocman_jupyter.git.refs import HEADS, BaseChoice, commits, read_refs
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.git.status import read_status
from ocman_jupyter.git.together import together

_ITEMS_AT_MOST = 200
_COMMITS_AT_MOST = 1000
_LOGGED_AT_MOST = 1000
_SQUASHES_AT_MOST = 50
_LOG_BYTES_AT_MOST = 1 << 20
_COMPARED_AT_MOST = 1 << 28
"""Bytes of ignored files that are compared with those of the main checkout; beyond that all are told."""
_SHA = r"[0-9a-f]{64}|[0-9a-f]{40}"
_LOGGED = re.compile(rf"({_SHA}) ({_SHA}) ")
_REF = re.compile(rf"({_SHA})\s*\Z")
_OWN_REFS = ("ORIG_HEAD", "rebase-merge/orig-head", "rebase-apply/orig-head")


@dataclass
class Loss:
    """One reason with all of its items; paths as the file system has them, relative to the worktree."""

    code: str
    message: str
    items: list[Item] = field(default_factory=list)

    @property
    def total_bytes(self) -> int:
        return sum(item.bytes or 0 for item in self.items)

    def reason(self) -> Reason:
        """For a person: the first items; the total is of all."""
        items = [Item(shown(item.path), item.bytes) for item in self.items[:_ITEMS_AT_MOST]]
        more = len(self.items) - len(items)
        message = f"{self.message[:-1]}; the first {len(items)} are listed." if more else self.message
        return Reason(self.code, message, items, self.total_bytes)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


async def losses(
    git: Git,
    repository: Repository,
    worktree: Worktree,
    row: Made | None,
    delete_branch: bool,
    admin: str | None,
) -> list[Loss]:
    """All that removing ``worktree`` would lose.  A check that fails is "unverified".

    ``delete_branch``: its branch goes as well.  ``admin``: its own git directory, which goes with it.

    Raises ``NoSuchWorktree`` when it vanished meanwhile.
    """
    checks: list[tuple[str, Awaitable[list[Loss]]]] = []
    if worktree.state == "ok":
        checks += [
            ("uncommitted and untracked files", _changed(git, worktree.path)),
            ("ignored files", _ignored(git, worktree.path, repository.root)),
            ("hidden changes and submodules", _hidden(git, worktree.path)),
        ]
    elif worktree.state != "missing":
        checks.append(("the files", _unlinked(git, worktree)))
    elif admin is not None:
        checks += [
            ("what is staged", _staged(git, worktree, admin)),
            ("submodules", _left_modules(git, admin)),
        ]
    if worktree.head is not None:
        if worktree.branch is None:
            checks.append(("commits", _detached_commits(git, repository, worktree)))
        elif delete_branch:
            checks.append(("commits of the branch", _branch_commits(git, repository, worktree, row)))
    if admin is not None:
        check = _own_commits(git, repository, worktree, row, delete_branch, admin)
        checks.append(("commits that only it remembers", check))
    results = await together(*(_closed(what, check) for what, check in checks))
    if await git.disk(_vanished, worktree, admin):
        path = shown(worktree.path)
        raise NoSuchWorktree(f"There is no worktree at {path} any more.", details={"path": path})
    found = [loss for result in results for loss in result]
    if worktree.operation:
        found.append(Loss("operation", f"A {worktree.operation} is under way."))
    if worktree.locked:
        why = f": {worktree.lock_reason}" if worktree.lock_reason else ""
        found.append(Loss("locked", f"The worktree is locked{why}."))
    return joined(found)


def _vanished(worktree: Worktree, admin: str | None) -> bool:
    if worktree.state == "missing":
        return admin is not None and not os.path.lexists(admin)
    return not os.path.lexists(worktree.path)


async def _closed(what: str, check: Awaitable[list[Loss]]) -> list[Loss]:
    try:
        return await check
    except OcmanError as error:
        return [Loss("unverified", f"Could not check {what}: {error.message}")]
    except (OSError, ValueError) as error:
        return [Loss("unverified", f"Could not check {what}: {error}")]


def joined(found: list[Loss]) -> list[Loss]:
    """One loss per code."""
    by_code: dict[str, Loss] = {}
    for loss in found:
        known = by_code.setdefault(loss.code, loss)
        if known is not loss:
            known.message += " " + loss.message
            known.items += loss.items
    return list(by_code.values())


async def _changed(git: Git, path: str) -> list[Loss]:
    entries = await read_status(git, path, untracked="all", submodules=True)
    found = []
    changed = [entry.path for entry in entries if entry.kind in "12u"]
    if changed:
        items = await git.disk(_sized, path, changed)
        verb = "differs" if len(changed) == 1 else "differ"
        found.append(
            Loss(
                "uncommitted",
                f"{_counted(len(changed), 'file', 'files')} {verb} from the last commit.",
                items,
            )
        )
    untracked = [entry.path for entry in entries if entry.kind == "?"]
    if untracked:
        items = await git.disk(_sized, path, untracked)
        found.append(Loss("untracked", f"{_counted(len(untracked), 'file', 'files')} git does not track.", items))
    return found


async def _ignored(git: Git, path: str, root: str) -> list[Loss]:
    """Those that are not in the main checkout ``root`` as well, as what was carried from there is."""
    done = await git.run("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--directory", cwd=path)
    names = [name for name in done.text.split("\0") if name]
    items = [item for item in await git.disk(_sized, path, names) if item.bytes is not None]
    kept = await git.disk(_Kept(path, root).of, items) if items else set()
    items = [item for item in items if item.path not in kept]
    if not items:
        return []
    count = _counted(len(items), "ignored file or folder", "ignored files or folders")
    message = f"{count} that git would delete silently."
    return [Loss("ignored", message, items)]


class _Kept:
    """Which ignored files and folders the main checkout has as well, to the byte."""

    def __init__(self, top: str, root: str) -> None:
        self._top, self._root = top, root
        self._left = _COMPARED_AT_MOST

    def of(self, items: list[Item]) -> set[str]:
        return {item.path for item in items if self._is_kept(item.path.rstrip("/"))}

    def _is_kept(self, name: str) -> bool:
        here, there = os.path.join(self._top, name), os.path.join(self._root, name)
        try:
            mine, theirs = os.lstat(here), os.lstat(there)
            if stat.S_ISLNK(mine.st_mode):
                pointing = os.readlink(here)
                return pointing == there or stat.S_ISLNK(theirs.st_mode) and pointing == os.readlink(there)
            if stat.S_ISDIR(mine.st_mode):
                return stat.S_ISDIR(theirs.st_mode) and all(self._is_kept(f"{name}/{one}") for one in os.listdir(here))
            facts = (mine.st_size, mine.st_mtime_ns)
            if not stat.S_ISREG(mine.st_mode) or facts != (theirs.st_size, theirs.st_mtime_ns):
                return False
            self._left -= mine.st_size
            return self._left >= 0 and same_content(here, there)
        except OSError:
            return False


async def _hidden(git: Git, path: str) -> list[Loss]:
    """What `git status` does not show: files flagged to be left alone, and what is in submodules."""
    done = await git.run("ls-files", "-v", "--stage", "-z", cwd=path)
    flagged: dict[str, str] = {}
    modules: list[str] = []
    for line in done.text.split("\0"):
        facts, _, name = line.partition("\t")
        parts = facts.split(" ")
        if len(parts) != 4:
            continue
        tag, mode, sha, _stage = parts
        if mode == "160000":
            modules.append(name)
        elif tag == "S" or tag.islower():
            flagged[name] = sha
    found = []
    changed = await _differing(git, path, flagged)
    if changed:
        items = await git.disk(_sized, path, changed)
        message = f"{_counted(len(changed), 'file', 'files')} marked to be left alone by git and changed."
        found.append(Loss("uncommitted", message, items))
    full = [item for item in await git.disk(_sized, path, modules) if item.bytes is not None]
    admin = await git.disk(link_of, path)
    if full or admin is not None and await git.disk(_has_modules, admin):
        found.append(Loss("unverified", "Submodules are checked out here; what is in them was not checked.", full))
    return found


def _has_modules(admin: str) -> bool:
    """Are there repositories of submodules in the admin folder, which goes with the worktree?"""
    return os.path.isdir(os.path.join(admin, "modules"))


async def _left_modules(git: Git, admin: str) -> list[Loss]:
    if not await git.disk(_has_modules, admin):
        return []
    return [Loss("unverified", "Submodules were checked out there; what only they hold was not checked.")]


async def _differing(git: Git, path: str, flagged: dict[str, str]) -> list[str]:
    there = await git.disk(_existing, path, list(flagged))
    plain = [name for name in there if "\n" not in name]
    differing = [name for name in there if "\n" in name]
    if plain:
        question = b"".join(os.fsencode(name) + b"\n" for name in plain)
        done = await git.run("hash-object", "--stdin-paths", cwd=path, input=question)
        hashes = done.text.split()
        differing += [name for name, sha in zip(plain, hashes, strict=True) if flagged[name] != sha]
    return differing


def _existing(top: str, names: list[str]) -> list[str]:
    return [name for name in names if os.path.lexists(os.path.join(top, name))]


async def _unlinked(git: Git, worktree: Worktree) -> list[Loss]:
    names = await git.disk(_children, worktree.path)
    items = [item for item in await git.disk(_sized, worktree.path, names) if item.bytes is not None]
    if worktree.state == "moved":
        why = "Its link to the repository is broken, nothing was compared; `git worktree repair` mends it."
    else:
        why = "It is a folder that is not linked to the repository, nothing was compared."
    if not items and worktree.state == "not_a_worktree":
        return []
    return [Loss("unverified", why, items)]


def _children(path: str) -> list[str]:
    return sorted(os.listdir(path))


async def _staged(git: Git, worktree: Worktree, admin: str) -> list[Loss]:
    """What only the index of a missing worktree holds."""
    # Its branch may have moved on without it: then its own log tells what its index was made from.
    last = await git.disk(_last_logged, os.path.join(admin, "logs", "HEAD"))
    found: set[str] | None = None
    for commit in dict.fromkeys(sha for sha in (worktree.head, last) if sha):
        if found is None or found:
            differing = await _staged_beyond(git, admin, commit)
            found = differing if found is None else found & differing
    if not found:
        return []
    message = f"{_counted(len(found), 'file', 'files')} staged in the missing worktree and in no commit."
    return [Loss("uncommitted", message, [Item(name, None) for name in sorted(found)])]


async def _staged_beyond(git: Git, admin: str, commit: str) -> set[str]:
    done = await git.run(
        f"--git-dir={admin}",
        "diff",
        "--cached",
        "--name-only",
        "--no-renames",
        "--no-relative",
        "--diff-filter=du",  # what is deleted the commit has, and a conflict is of an operation
        "-z",
        commit,
        "--",
        cwd=admin,
    )
    return {name for name in done.text.split("\0") if name}


async def _detached_commits(git: Git, repository: Repository, worktree: Worktree) -> list[Loss]:
    assert worktree.head is not None
    found = await _only_in(git, repository, worktree.head, [])
    if not found:
        return []
    message = f"{_counted(len(found), 'commit', 'commits')} that no branch, tag or remote holds."
    return [Loss("unreachable_commits", message, found)]


async def _branch_commits(git: Git, repository: Repository, worktree: Worktree, row: Made | None) -> list[Loss]:
    branch, head = worktree.branch, worktree.head
    assert branch is not None and head is not None
    found = await _only_in(git, repository, head, [f"--exclude={branch}"])
    if not found or await _are_squashed(git, repository, {head}, row):
        return []
    message = f"{_counted(len(found), 'commit', 'commits')} of {branch} that nothing else holds."
    return [Loss("unreachable_commits", message, found)]


async def _own_commits(
    git: Git,
    repository: Repository,
    worktree: Worktree,
    row: Made | None,
    delete_branch: bool,
    admin: str,
) -> list[Loss]:
    """What only the refs and the reflog in its admin folder hold; what its head holds is looked at elsewhere."""
    log = None
    if worktree.branch is not None and not delete_branch:  # its reflog stays, with all that was amended
        log = os.path.join(repository.common_dir, "logs", HEADS + worktree.branch)
    tips = await git.disk(_own_tips, admin)
    kept = (await git.disk(_logged, log) if log else set()) | ({worktree.head} if worktree.head else set())
    tips -= kept
    if not tips:
        return []
    question = "".join([*(f"{sha}\n" for sha in sorted(tips)), *(f"^{sha}\n" for sha in sorted(kept))])
    done = await git.run(
        "log",
        "-z",
        "--format=%H%n%P%n%h %s",
        "--topo-order",
        f"--max-count={_COMMITS_AT_MOST}",
        "--no-show-signature",
        "--ignore-missing",
        "--stdin",
        "--not",
        "--branches",
        "--tags",
        "--remotes",
        cwd=repository.common_dir,
        input=question.encode(),
    )
    found = [line.split("\n", 2) for line in done.text.split("\0") if line]
    if not found:
        return []
    newest = {sha for sha, *_ in found} - {parent for _, parents, _ in found for parent in parents.split()}
    if len(newest) <= _SQUASHES_AT_MOST and await _are_squashed(git, repository, newest, row):
        return []
    items = [Item(line, None) for _, _, line in found]
    message = f"{_counted(len(items), 'commit', 'commits')} that only this worktree's own history remembers."
    return [Loss("unreachable_commits", message, items)]


def _own_tips(admin: str) -> set[str]:
    tips = _logged(os.path.join(admin, "logs", "HEAD"))
    paths = [os.path.join(admin, name) for name in _OWN_REFS]
    for folder, _, names in os.walk(os.path.join(admin, "refs")):
        paths += [os.path.join(folder, name) for name in names]
    for path in paths:
        match = _REF.match(read_line(path) or "")
        if match:
            tips.add(match[1])
    return {sha for sha in tips if sha.strip("0")}


def _logged(path: str) -> set[str]:
    """All that the newest entries of a reflog name.  Raises ``OSError``."""
    return {sha for entry in _entries(path) for sha in entry if sha.strip("0")}


def _last_logged(path: str) -> str | None:
    """Where the newest entry of a reflog leads.  Raises ``OSError``."""
    entries = _entries(path)
    return entries[-1][1] if entries and entries[-1][1].strip("0") else None


def _entries(path: str) -> list[tuple[str, str]]:
    """From where to where each of the newest entries of a reflog leads."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES_AT_MOST))
            lines = file.read(_LOG_BYTES_AT_MOST).decode("utf-8", "replace").split("\n")
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = (_LOGGED.match(line) for line in lines[-_LOGGED_AT_MOST - 1 :])
    return [(match[1], match[2]) for match in matches if match]


async def _only_in(git: Git, repository: Repository, head: str, but: list[str]) -> list[Item]:
    done = await git.run(
        "log",
        "-z",
        "--format=%h %s",
        f"--max-count={_COMMITS_AT_MOST}",
        "--no-show-signature",
        head,
        "--not",
        *but,
        "--branches",
        "--tags",
        "--remotes",
        "--",
        cwd=repository.common_dir,
    )
    return [Item(line, None) for line in done.text.split("\0") if line]


async def _are_squashed(git: Git, repository: Repository, heads: set[str], row: Made | None) -> bool:
    """Is all that each of ``heads`` changed in its base, or in the default base?"""
    choice = BaseChoice(None)
    named = [HEADS + row.base_ref, "refs/remotes/" + row.base_ref] if row and row.base_ref else []
    found = await commits(git, named, repository.root)
    refs = await read_refs(git, repository)
    base = choice.choose(await choice.read(git, refs, repository.root), refs.remote_default, None)
    bases = {found[name].sha for name in named if name in found} | ({base.sha} if base else set())
    pairs = {(head, sha) for head in heads for sha in bases if sha != head}
    standings = await History(git).compare(pairs, repository.common_dir)
    return heads <= {head for (head, _), standing in standings.items() if standing.squashed}


def _sized(top: str, names: list[str]) -> list[Item]:
    """Each with its size on disk, links not followed; ``None`` for what is not there or holds no file."""
    return [Item(name, size_of(os.path.join(top, name.rstrip("/")))) for name in names]
