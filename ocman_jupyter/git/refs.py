"""Branches, and the base that a new one starts from: names resolved in full, and verified to be commits."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ocman_jupyter.errors import NoBase
from ocman_jupyter.git.command import Completed, Git, GitFailed
from ocman_jupyter.git.names import HEADS
from ocman_jupyter.git.records import Base
from ocman_jupyter.git.repository import Repository

_REMOTE = "refs/remotes/origin/"
DEFAULTS = (
    _REMOTE + "HEAD",
    *(prefix + name for prefix in (HEADS, _REMOTE) for name in ("main", "master")),
)
"""Where new branches start when nothing else is said, the first that is there."""
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_PACKED = 500_000
"""Bytes of packed refs that are read faster than git starts."""
_COMMITTED = re.compile(rb"^committer .*> (\d+) [+-]\d+$", re.MULTILINE)


@dataclass(frozen=True)
class Commit:
    """A commit that is there."""

    sha: str
    committed: float | None
    """Unix time."""


@dataclass(frozen=True)
class Refs:
    """What was read in one go of the branches near a name, and of the default branches."""

    branches: dict[str, str]
    """Branch → sha, of all that could be in the way of the name that was asked for."""
    defaults: dict[str, Commit]
    """Those of the default branches (:data:`DEFAULTS`) that are commits."""
    remote_default: str | None
    """Full name of the ref that ``origin/HEAD`` points to."""
    remote_branch: str | None
    """Full name of ``origin``'s branch of the same name."""
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Branches that only stand for another one (symbolic refs) → that one."""


async def read_refs(git: Git, repository: Repository, branch: str | None = None) -> Refs:
    """One process.  Without ``branch`` only the default branches are looked at."""
    patterns = list(DEFAULTS)
    if branch is not None:
        patterns += [HEADS + branch.split("/")[0], _REMOTE + branch]

    async def read(more: str, ok: tuple[int, ...]) -> Completed:
        names = "%(refname)%00%(symref)%00%(objectname)%00"
        command = ("for-each-ref", "--ignore-case", f"--format={names}{more}", *patterns)
        return await git.run(*command, cwd=repository.common_dir, ok=ok)

    done = await read("%(objecttype)%00%(committerdate:unix)", (0, 128))
    broken = done.code != 0  # a ref whose object is gone spoils all of it
    if broken:
        done = await read("%00", (0,))
    branches: dict[str, str] = {}
    other_names: dict[str, str] = {}
    defaults: dict[str, Commit] = {}
    remote_default = remote_branch = None
    for line in filter(None, done.text.split("\n")):
        name, symref, sha, kind, when = line.split("\0")
        if name in DEFAULTS and kind == "commit":
            defaults[name] = Commit(sha, float(when) if when else None)
        if name == _REMOTE + "HEAD":
            remote_default = symref or name
        elif name.startswith(HEADS):
            branches[name[len(HEADS) :]] = sha
            if symref.startswith(HEADS):
                other_names[name[len(HEADS) :]] = symref[len(HEADS) :]
        elif branch is not None and name == _REMOTE + branch:
            remote_branch = name
    if broken:
        defaults = await commits(git, DEFAULTS, repository.common_dir)
    return Refs(branches, defaults, remote_default, remote_branch, other_names)


def glance(common_dir: str, branch: str) -> Refs | None:
    """What :func:`read_refs` tells, by the files of the refs: no process, no times, and nothing is verified.

    ``None`` when the files do not tell: reftables, symbolic branches, very many packed refs.
    """
    try:
        if os.path.isdir(os.path.join(common_dir, "reftable")):
            return None
        packed = _packed(common_dir)
        if packed is None:
            return None
        first = branch.split("/")[0].casefold()
        found = {
            name: sha
            for name, sha in packed.items()
            if name.startswith(HEADS) and name[len(HEADS) :].split("/")[0].casefold() == first
        }
        for name in os.listdir(os.path.join(common_dir, HEADS)):
            if name.casefold() == first:
                found.update(_loose(common_dir, HEADS + name))
        branches = {name[len(HEADS) :]: sha for name, sha in found.items()}
        defaults = {}
        remote_default = _symbolic(common_dir, DEFAULTS[0])
        for name in DEFAULTS:
            target = remote_default if name == DEFAULTS[0] else name
            sha = target and (_sha(common_dir, target) or packed.get(target))
            if sha:
                defaults[name] = Commit(sha, None)
        if DEFAULTS[0] not in defaults:
            remote_default = None  # it dangles
        remote = _REMOTE + branch
        is_there = _sha(common_dir, remote) or packed.get(remote)
        return Refs(branches, defaults, remote_default, remote if is_there else None)
    except (OSError, ValueError):
        return None


def _packed(common_dir: str) -> dict[str, str] | None:
    path = os.path.join(common_dir, "packed-refs")
    try:
        if os.path.getsize(path) > _MOST_PACKED:
            return None
        with open(path, "rb") as file:
            text = os.fsdecode(file.read())
    except FileNotFoundError:
        return {}
    lines = (line.split(" ", 1) for line in text.split("\n") if line and line[0] not in "#^")
    return {name: sha for sha, name in lines}


def _loose(common_dir: str, name: str) -> dict[str, str]:
    path = os.path.join(common_dir, name)
    if not os.path.isdir(path):
        sha = _sha(common_dir, name)
        return {} if sha is None else {name: sha}
    found = {}
    for one in os.listdir(path):
        found.update(_loose(common_dir, f"{name}/{one}"))
    return found


def _sha(common_dir: str, name: str) -> str | None:
    """The content of one loose ref.  Raises ``ValueError`` when it is no plain one."""
    path = os.path.join(common_dir, name)
    try:
        with open(path, "rb") as file:
            text = file.read(200).decode("ascii").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if name.endswith(".lock"):
        return None
    if not _SHA.fullmatch(text) or os.path.islink(path):
        raise ValueError(name)
    return text


def _symbolic(common_dir: str, name: str) -> str | None:
    """Where a symbolic ref points; ``None``: there is none.  Raises ``ValueError`` when it is a plain one."""
    try:
        with open(os.path.join(common_dir, name), "rb") as file:
            text = os.fsdecode(file.read(4096)).strip()
    except FileNotFoundError:
        return None
    if not text.startswith("ref: refs/"):
        raise ValueError(name)
    return text.removeprefix("ref: ")


async def commits(git: Git, names: Iterable[str], cwd: str) -> dict[str, Commit]:
    """Those of ``names`` (revisions as git reads them) that name a commit; one process.

    The same answer as ``rev-parse --verify --end-of-options <name>^{commit}`` of each: the names are
    read from standard input, where nothing is an option.
    """
    asked = [name for name in names if name and "\n" not in name and "\0" not in name]
    lines = "".join(f"{name}^{{commit}}\n" for name in asked)
    try:
        question = lines.encode("utf-8")
    except UnicodeEncodeError:
        return {}
    done = await git.run("cat-file", "--batch", cwd=cwd, input=question)
    found: dict[str, Commit] = {}
    rest = done.out
    for name in asked:
        first, _, rest = rest.partition(b"\n")
        facts = first.split(b" ")
        if len(facts) != 3 or facts[1] != b"commit" or not facts[2].isdigit():
            continue  # "<name> missing" or "<name> ambiguous"
        size = int(facts[2])
        when = _COMMITTED.search(rest[:size].partition(b"\n\n")[0])
        found[name] = Commit(facts[0].decode(), float(when[1]) if when else None)
        rest = rest[size + 1 :]
    if rest:
        raise GitFailed(("cat-file", "--batch"), done)
    return found


def age(commit: Commit | None) -> float | None:
    """Seconds since a commit was made, where that is known."""
    if commit is None or commit.committed is None:
        return None
    return max(0.0, round(time.time() - commit.committed, 1))


def full_names(ref: str) -> list[str]:
    """What a short name may stand for.  Full names first: a tag of the same name would win otherwise."""
    return [HEADS + ref, "refs/remotes/" + ref, "refs/tags/" + ref]


def short(ref: str) -> str:
    """The name that people know a branch by."""
    return ref.removeprefix(HEADS).removeprefix("refs/remotes/")


class BaseChoice:
    """Where a new branch starts: the explicit base, ``origin/HEAD``, main or master, the current branch."""

    def __init__(self, explicit: str | None) -> None:
        self.explicit = explicit

    @property
    def candidates(self) -> list[str]:
        """All revisions that may be it, in the order of preference."""
        if self.explicit is None:
            return [*DEFAULTS, "HEAD"]
        name = self.explicit
        if not name.isprintable():
            return []
        return [*full_names(name), name, _REMOTE + name]

    async def read(self, git: Git, refs: Refs, cwd: str) -> dict[str, Commit]:
        """Which :attr:`candidates` are commits; no process where a default branch is there."""
        if self.explicit is not None:
            return await commits(git, self.candidates, cwd)
        return refs.defaults or await commits(git, ["HEAD"], cwd)

    def choose(
        self, found: dict[str, Commit], remote_default: str | None, current: str | None
    ) -> Base | None:
        """The base, or ``None`` when nothing names a commit.

        Parameters
        ----------
        found:
            What :meth:`read` gave.
        current:
            The branch checked out where it was asked from.

        Raises
        ------
        NoBase
            The explicit base does not name a commit.
        """
        for candidate in self.candidates:
            commit = found.get(candidate)
            if commit is None:
                continue
            if self.explicit is not None:
                ref = f"origin/{self.explicit}" if candidate == _REMOTE + self.explicit else self.explicit
                if ref in ("HEAD", "@"):  # would mean something else wherever it is read again
                    ref = current or "HEAD"
            elif candidate == _REMOTE + "HEAD":
                ref = short(remote_default or candidate)
            else:
                ref = current or "HEAD" if candidate == "HEAD" else short(candidate)
            return Base(ref=ref, sha=commit.sha, age_seconds=age(commit))
        if self.explicit is not None:
            raise NoBase(
                f"The base {self.explicit!r} does not name a commit.",
                details={"base": ascii(self.explicit)[1:-1]},
            )
        return None
