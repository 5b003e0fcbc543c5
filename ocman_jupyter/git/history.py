"""How branches stand to their base: ahead, behind, merged, squash-merged; few processes for all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ocman_jupyter.git.command import Git
from ocman_jupyter.git.records import Merged

_COMMITS_AT_MOST = 200_000
_SQUASHES_AT_MOST = 1000
_REMEMBERED = 10_000
_PLAIN_DIFF = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
_HEADER = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64})\n", re.MULTILINE)

Pair = tuple[str, str]
"""Sha of a head, sha of its base."""


@dataclass(frozen=True)
class Standing:
    """A head as seen from its base."""

    ahead: int
    behind: int
    squashed: bool
    """What it changed is in the base, though its commits are not."""

    def merged(self, head: str, began_at: str | None) -> Merged:
        """``began_at``: the commit that the branch was started from, where that is known."""
        if self.ahead == 0:
            return "no" if head == began_at else "yes"  # nothing was done yet: nothing was merged
        return "squashed" if self.squashed else "no"


class History:
    """Compares heads with bases.  A comparison of two commits is true for ever, and remembered."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[Pair, Standing] = {}

    async def compare(self, pairs: Iterable[Pair], cwd: str) -> dict[Pair, Standing]:
        """The standing of each pair; one that cannot be told is left out.  Raises ``GitFailed`` and kin."""
        asked = set(pairs)
        todo = {pair for pair in asked if pair not in self._known}
        if todo:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known.update(await self._find(todo, cwd))
        return {pair: self._known[pair] for pair in asked if pair in self._known}

    async def _find(self, pairs: set[Pair], cwd: str) -> dict[Pair, Standing]:
        found = {pair: Standing(0, 0, False) for pair in pairs if pair[0] == pair[1]}
        apart = pairs - set(found)
        if not apart:
            return found
        tips = sorted({sha for pair in apart for sha in pair})
        common = await self._git.run("merge-base", "--octopus", *tips, cwd=cwd, ok=(0, 1))
        shared = common.text.split()[:1]
        listing = await self._git.run(
            "rev-list",
            "--topo-order",
            "--parents",
            f"--max-count={_COMMITS_AT_MOST + 1}",
            "--stdin",
            cwd=cwd,
            input="".join(f"{sha}\n" for sha in [*tips, *(f"^{sha}" for sha in shared)]).encode(),
        )
        graph = await self._git.disk(_Graph.read, listing.out, tips, shared[0] if shared else None)
        if graph is None:
            return found
        counted = {pair: (graph.only_in(*pair), graph.only_in(pair[1], pair[0])) for pair in apart}
        forks = {
            pair: fork
            for pair, (ahead, behind) in counted.items()
            if ahead and behind and (fork := graph.fork(*pair))
        }
        squashed = await self._squashed(forks, cwd) if forks else set()
        for pair, (ahead, behind) in counted.items():
            found[pair] = Standing(ahead, behind, pair in squashed)
        return found

    async def _squashed(self, forks: dict[Pair, str], cwd: str) -> set[Pair]:
        """Pairs whose head's whole change since the fork is in the base."""
        pairs = sorted(forks)
        question = "".join(f"{head} {forks[head, base]}\n{head} {base}\n" for head, base in pairs)
        raw = await self._git.run(
            "diff-tree", "--stdin", "-r", "-z", "--always", "--no-renames", cwd=cwd, input=question.encode()
        )
        changes = list(_changed_paths(raw.out))
        squashed: set[Pair] = set()
        rest: dict[Pair, bytes] = {}
        if len(changes) != 2 * len(pairs):
            return squashed
        for pair, own, apart in zip(pairs, changes[::2], changes[1::2], strict=True):
            if own and not own & apart:
                squashed.add(pair)
            elif own:
                rest[pair] = min(own)
        return squashed | (await self._squash_commits(rest, forks, cwd) if rest else set())

    async def _squash_commits(self, rest: dict[Pair, bytes], forks: dict[Pair, str], cwd: str) -> set[Pair]:
        """Pairs of which one commit of the base has the same patch: the base may have gone on since."""
        pairs = sorted(rest)
        question = "".join(f"{head} {forks[head, base]}\n" for head, base in pairs)
        patches = await self._git.run(
            "diff-tree", "--stdin", "-p", "--always", *_PLAIN_DIFF, cwd=cwd, input=question.encode()
        )
        own = _sections(patches.out)
        pairs = [pair for pair in pairs if _is_text(own.get(pair[0], b""))]
        if not pairs:
            return set()
        paths = sorted({rest[pair] for pair in pairs})
        bases = sorted({base for _, base in pairs})
        starts = sorted({forks[pair] for pair in pairs})
        common = await self._git.run("merge-base", "--octopus", *starts, cwd=cwd, ok=(0, 1))
        commits = await self._git.run(
            "log",
            "-p",
            "--format=%H",
            "--no-merges",
            "--full-diff",
            f"--max-count={_SQUASHES_AT_MOST}",
            *_PLAIN_DIFF,
            *bases,
            *(f"^{sha}" for sha in common.text.split()[:1]),
            "--",
            *(f":(literal,top){path.decode('utf-8', 'surrogateescape')}" for path in paths),
            cwd=cwd,
        )
        theirs = {patch for patch, _ in await self._patch_ids(commits.out, cwd)}
        mine = await self._patch_ids(b"".join(head.encode() + b"\n" + own[head] for head, _ in pairs), cwd)
        same = {sha for patch, sha in mine if patch in theirs}
        return {pair for pair in pairs if pair[0] in same}

    async def _patch_ids(self, patches: bytes, cwd: str) -> list[tuple[str, str]]:
        done = await self._git.run("patch-id", "--stable", cwd=cwd, input=patches)
        return [(patch, sha) for patch, sha in (line.split() for line in done.text.splitlines())]


class _Graph:
    """Commits by which tips reach them."""

    def __init__(self, tips: list[str], shared: str | None) -> None:
        self._bit = {sha: 1 << index for index, sha in enumerate(tips)}
        self._shared = shared
        self._count: Counter[int] = Counter()
        self._first: dict[int, tuple[int, str]] = {}

    @classmethod
    def read(cls, listing: bytes, tips: list[str], shared: str | None) -> _Graph | None:
        """From `rev-list --topo-order --parents`; ``None`` when it was cut off."""
        graph = cls(tips, shared)
        reached: dict[str, int] = dict(graph._bit)
        lines = listing.decode("ascii").splitlines()
        if len(lines) > _COMMITS_AT_MOST:
            return None
        for order, line in enumerate(lines):
            sha, *parents = line.split()
            mask = reached.pop(sha, 0)
            graph._count[mask] += 1
            graph._first.setdefault(mask, (order, sha))
            for parent in parents:
                reached[parent] = reached.get(parent, 0) | mask
        return graph

    def only_in(self, tip: str, other: str) -> int:
        """How many commits ``tip`` reaches and ``other`` does not."""
        here, there = self._bit[tip], self._bit[other]
        return sum(count for mask, count in self._count.items() if mask & here and not mask & there)

    def fork(self, one: str, other: str) -> str | None:
        """Their best common ancestor, ``None`` when there is none."""
        both = self._bit[one] | self._bit[other]
        shared = [first for mask, first in self._first.items() if mask & both == both]
        return min(shared)[1] if shared else self._shared


def _changed_paths(raw: bytes) -> Iterable[set[bytes]]:
    """The paths of each comparison in the output of `diff-tree --stdin -r -z --always`."""
    paths: set[bytes] | None = None
    fields = iter(raw.split(b"\0"))
    for one in fields:
        if one.startswith(b":") and paths is not None:
            paths.add(next(fields, b""))
        elif one:
            if paths is not None:
                yield paths
            paths = set()
    if paths is not None:
        yield paths


def _sections(patches: bytes) -> dict[str, bytes]:
    """Patch by the commit in whose name it stands."""
    parts = _HEADER.split(patches)
    return {sha.decode(): patch for sha, patch in zip(parts[1::2], parts[2::2], strict=True)}


def _is_text(patch: bytes) -> bool:
    """Does a patch id say all of it?  Before git 2.39 it says nothing of binary files, modes, empty files."""
    files = re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:]
    return bool(files) and all(b"\n@@ " in file for file in files)
