"""An unchanged tree is not read again, and whatever moves in one is seen."""

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ocman_jupyter.git import status, watches
from ocman_jupyter.git.watches import Watches, file_system

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what moved")

OLD = 1_600_000_000_123_456_789
LOCAL = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"


def watch(on: Watches, tree: Path, *ignored: str) -> bool:
    """Read a tree and watch it, as ``Statuses`` does."""
    begun = on.begin(str(tree), frozenset(ignored))
    if begun is None:
        return False
    scan = status._scan(str(tree), frozenset(ignored), lambda folder, prefix: on.enter(begun, folder, prefix))
    on.end(begun, scan.watchable)
    return on.quiet(str(tree))


def descriptors() -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.path.lexists(one) and "inotify" in os.readlink(one) for one in links)


@pytest.fixture
def make_watches() -> Iterator[Callable[..., Watches]]:
    made: list[Watches] = []

    def make(text: str = LOCAL, **limits: int) -> Watches:
        made.append(Watches(lambda: text, **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str = "tree", folders: int = 0) -> Path:
        tree = tmp_path / name
        for folder in ("src/deep", "build/out", *(f"f{number}" for number in range(folders))):
            (tree / folder).mkdir(parents=True)
        for file in ("a", "src/b", "src/deep/c", "build/out/d", "x.log"):
            (tree / file).write_text("1\n")
        (tree / "link").symlink_to("a")
        return tree

    return make


# --- what is seen --------------------------------------------------------------------------------


def map_and_write(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        file.close()
        memory[:1] = b"2"


def relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("src")


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing moved, but was read": lambda tree: None,
    "written in place": lambda tree: (tree / "src/b").write_text("2\n"),
    "written in place, dated back": lambda tree: (tree / "a").write_text("2\n") and os.utime(tree / "a", ns=(OLD, OLD)),
    "written through a map": lambda tree: map_and_write(tree / "src/deep/c"),
    "mode": lambda tree: (tree / "src/b").chmod(0o755),
    "renamed": lambda tree: (tree / "src/b").rename(tree / "src/e"),
    "renamed over another": lambda tree: (tree / "src/b").rename(tree / "a"),
    "new": lambda tree: (tree / "src/new").write_text(""),
    "new, in a new folder": lambda tree: ((tree / "src/n").mkdir(), (tree / "src/n/new").write_text("")),
    "second name": lambda tree: os.link(tree / "a", tree / "src/twin"),
    "removed": lambda tree: (tree / "a").unlink(),
    "folder removed": lambda tree: shutil.rmtree(tree / "src/deep"),
    "symbolic link": lambda tree: relink(tree / "link"),
    "folder moved away": lambda tree: (tree / "src/deep").rename(tree.parent / "away"),
    "folder moved within": lambda tree: (tree / "src/deep").rename(tree / "deep"),
    "folder moved in": lambda tree: (tree.parent / "outside").rename(tree / "src/inside"),
    "mode of a folder": lambda tree: (tree / "src/deep").chmod(0o700),
    "tree moved away": lambda tree: tree.rename(tree.parent / "gone"),
    "parent moved away": lambda tree: tree.parent.rename(tree.parent.with_name("elsewhere")),
    "tree removed": shutil.rmtree,
    "an ignored name is another thing now": lambda tree: ((tree / "x.log").unlink(), (tree / "x.log").mkdir()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_moves_is_seen(make_watches, make_tree, name):
    on, tree = make_watches(), make_tree("place/tree")
    (tree.parent / "outside").mkdir()
    assert watch(on, tree, "build/", "x.log")
    for folder, _, files in os.walk(tree):
        for file in files:
            Path(folder, file).read_bytes()
    CHANGES[name](tree)
    assert bool(on.quiet(str(tree))) == name.startswith("nothing")
    assert bool(on.quiet(str(tree))) == name.startswith("nothing")  # it is not forgotten once told


def test_what_is_ignored_may_move(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    assert watch(on, tree, "build/", "x.log")
    (tree / "build/out/d").write_text("2\n")
    (tree / "build/more").mkdir()
    (tree / "x.log").write_text("longer\n")
    (tree / "build").chmod(0o700)
    assert on.quiet(str(tree))
    (tree / "src/x.log").write_text("")  # not the same
    assert not on.quiet(str(tree))


def test_a_new_folder_is_watched_after_the_tree_was_read_again(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    watch(on, tree)
    (tree / "new").mkdir()
    (tree / "src/deep").rename(tree.parent / "away")
    assert not on.quiet(str(tree))
    assert watch(on, tree)
    (tree.parent / "away/c").write_text("2\n")  # not of this tree any more
    assert on.quiet(str(tree))
    (tree / "new/file").write_text("")
    assert not on.quiet(str(tree))


def test_a_tree_is_watched_on_without_being_read_again(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    assert watch(on, tree, "x.log")
    (tree / "a").write_text("2\n")
    (tree / "new").write_text("1\n")
    assert not on.quiet(str(tree))
    assert on.again(str(tree)) and on.quiet(str(tree))
    assert on.keep(str(tree), frozenset({"x.log", "y.log"}))
    (tree / "y.log").write_text("1\n")
    assert on.quiet(str(tree))
    (tree / "src/b").write_text("2\n")
    assert not on.quiet(str(tree))


def test_what_moves_between_is_seen(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    watch(on, tree)
    assert on.again(str(tree))
    (tree / "a").write_text("2\n")
    assert on.keep(str(tree), frozenset())
    assert not on.quiet(str(tree))


def test_a_file_that_is_perhaps_not_ignored_any_more_counts_meanwhile(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    watch(on, tree, "x.log")
    assert on.again(str(tree))
    (tree / "x.log").write_text("2\n")
    assert not on.quiet(str(tree))  # another thread's question has the same effect
    assert on.keep(str(tree), frozenset())
    assert not on.quiet(str(tree))


def new_folder(tree: Path) -> None:
    (tree / "new").mkdir()


def folder_moved_in(tree: Path) -> None:
    (tree.parent / "elsewhere").mkdir()
    (tree.parent / "elsewhere").rename(tree / "src/elsewhere")


def many_files(tree: Path) -> None:
    for number in range(1100):
        (tree / f"f{number}").touch()


def repository_of_its_own(tree: Path) -> None:
    (tree / "src/.git").write_text("gitdir: ../../elsewhere\n")


def submodules(tree: Path) -> None:
    (tree / ".gitmodules").touch()


def folder_gone(tree: Path) -> None:
    shutil.rmtree(tree / "src/deep")


@pytest.mark.parametrize("change", [new_folder, folder_moved_in, many_files, folder_gone])
def test_a_tree_with_other_folders_must_be_read(make_watches, make_tree, change):
    on, tree = make_watches(), make_tree()
    watch(on, tree)
    change(tree)
    assert not on.again(str(tree))
    watch(on, tree)
    assert on.again(str(tree))
    assert on.keep(str(tree), frozenset())


@pytest.mark.parametrize("change", [repository_of_its_own, submodules])
def test_a_tree_that_came_to_hold_another_repository_is_not_watched_on(make_watches, make_tree, change):
    on, tree = make_watches(), make_tree()
    watch(on, tree)
    assert on.again(str(tree))
    change(tree)
    assert not on.quiet(str(tree))
    assert not on.keep(str(tree), frozenset())


@pytest.mark.parametrize("before", [True, False])
def test_a_file_that_comes_with_a_second_name_is_noticed(make_watches, make_tree, before):
    on, tree = make_watches(), make_tree()
    outside = tree.parent / "outside"
    outside.write_text("1\n")
    watch(on, tree)
    if before:
        os.link(outside, tree / "in")
    assert on.again(str(tree))
    if not before:
        os.link(outside, tree / "in")
        assert not on.quiet(str(tree))
    assert not on.keep(str(tree), frozenset())
    assert not watch(on, tree)


def test_a_folder_that_counts_from_now_on_must_be_read(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    assert watch(on, tree, "build/")
    assert on.again(str(tree))
    assert not on.keep(str(tree), frozenset())


def test_an_unwatched_or_replaced_tree_must_be_read(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    assert not on.again(str(tree)) and not on.keep(str(tree), frozenset())
    watch(on, tree)
    tree.rename(tree.parent / "old")
    shutil.copytree(tree.parent / "old", tree)
    assert not on.again(str(tree))


def test_a_change_while_the_tree_is_read_is_seen(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    begun = on.begin(str(tree))

    def enter(folder: str, prefix: str) -> None:
        on.enter(begun, folder, prefix)
        if prefix == "src/deep/":
            (tree / "a").write_text("2\n")  # was read before

    status._scan(str(tree), frozenset(), enter)
    on.end(begun)
    assert not on.quiet(str(tree))


def test_one_folder_in_two_trees(make_watches, make_tree):
    on, outer = make_watches(), make_tree()
    inner = outer / "src"
    assert watch(on, outer) and watch(on, inner)
    (inner / "deep/c").write_text("2\n")
    assert not on.quiet(str(outer)) and not on.quiet(str(inner))
    assert watch(on, outer) and watch(on, inner)
    on.forget(str(outer))
    assert on.quiet(str(inner))
    (inner / "b").write_text("2\n")
    assert not on.quiet(str(inner))


# --- where the kernel cannot tell -----------------------------------------------------------------


def test_after_an_overflow_no_tree_is_quiet(make_watches, make_tree):
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("the queue is too long to fill")
    on, busy, still = make_watches(), make_tree("busy"), make_tree("still")
    assert watch(on, busy) and watch(on, still)
    for number in range(most // 2 + 10):  # two files in turn: like events in a row are one
        os.chmod(busy / "a", 0o600 + number % 2)
        os.chmod(busy / "src/b", 0o600 + number % 2)
    assert not on.quiet(str(still)) and not on.quiet(str(busy))
    assert watch(on, still) and watch(on, busy)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_no_watches_left(make_watches, make_tree, monkeypatch, number):
    on, tree, other = make_watches(), make_tree(), make_tree("other")
    assert watch(on, other)
    real = watches.INotify.add_watch

    def limited(self: object, path: str, mask: int) -> int:
        if path.endswith("deep"):
            raise OSError(number, os.strerror(number))
        return real(self, path, mask)

    monkeypatch.setattr(watches.INotify, "add_watch", limited)
    assert not watch(on, tree)
    assert len(on._owners) == 5  # those of the other one: what was begun is given back
    assert on.quiet(str(other))
    monkeypatch.undo()
    assert on.begin(str(tree)) is None  # not tried again at once
    monkeypatch.setattr(watches, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    assert watch(on, tree)


def test_no_descriptor_left(make_watches, make_tree, monkeypatch):
    on, tree = make_watches(), make_tree()

    def refuse(nonblocking: bool) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(watches, "INotify", refuse)
    assert not watch(on, tree)
    monkeypatch.undo()
    assert watch(on, tree)


MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:50 / /home rw - nfs4 server:/home rw
31 30 0:51 / /home/me/with\\040space rw - xfs /dev/vdb rw
32 27 0:52 / /mnt rw - ext4 /dev/vdc rw
33 27 0:53 / /mnt rw master:1 propagate_from:2 - fuse.sshfs me@there rw
broken
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homes/me", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/project", "nfs4"),
        ("/home/me/with space/project", "xfs"),
        ("/mnt/project", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_path(path, kind):
    assert file_system(path, MOUNTS) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuse", "9p", "vboxsf", "virtiofs", "never-heard-of"]
)
def test_a_file_system_that_others_may_write_to_is_not_trusted(make_watches, make_tree, tmp_path, kind):
    on = make_watches(LOCAL + f"30 27 0:50 / {tmp_path} rw - {kind} there rw\n")
    assert not watch(on, make_tree())
    assert on._inotify is None


def test_unknown_mounts_are_not_trusted(make_watches, make_tree):
    assert not watch(make_watches(""), make_tree())


def test_this_machine_can_tell_its_mounts():
    assert file_system("/proc", watches._mounts()) == "proc"


def test_a_file_with_a_second_name_elsewhere_is_not_trusted(make_watches, make_tree):
    on, tree = make_watches(), make_tree()
    os.link(tree / "src/b", tree.parent / "twin")
    assert not watch(on, tree)
    assert on._owners == {}


# --- limits --------------------------------------------------------------------------------------


def test_the_least_recently_used_go_first(make_watches, make_tree, monkeypatch):
    monkeypatch.setattr(watches, "_IDLE", 0.0)
    on = make_watches(trees=2)
    first, second, third = (make_tree(name) for name in ("first", "second", "third"))
    assert watch(on, first) and watch(on, second)
    assert on.quiet(str(first))
    assert watch(on, third)
    assert [on.quiet(str(one)) for one in (first, second, third)] == [True, None, True]
    assert len(on._owners) == 10


def test_folders_are_bounded_in_all(make_watches, make_tree, monkeypatch):
    on = make_watches(folders=20)
    small, large, huge = make_tree("small"), make_tree("large", 12), make_tree("huge", 30)
    assert watch(on, small)
    assert not watch(on, huge)  # never fits, and takes nobody's place
    assert not watch(on, large)  # the small one was asked about a moment ago
    assert on.quiet(str(small)) and len(on._owners) == 5
    monkeypatch.setattr(watches, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 61))
    assert watch(on, large)
    assert not on.quiet(str(small)) and len(on._owners) == 17


def test_what_was_removed_is_not_kept(make_watches, make_tree):
    on, tree, other = make_watches(), make_tree(), make_tree("other")
    assert watch(on, tree) and watch(on, other)
    shutil.rmtree(tree)
    assert on.quiet(str(other))
    assert list(on._trees) == [str(other)] and len(on._owners) == 5


def test_more_watches_than_the_queue_holds_can_be_given_back(make_watches, make_tree, monkeypatch):
    monkeypatch.setattr(watches, "_BATCH", 2)
    on, tree, other = make_watches(), make_tree(), make_tree("other")
    assert watch(on, tree) and watch(on, other)
    on.forget(str(tree))
    assert on.quiet(str(other)) and len(on._owners) == 5


def test_close(make_watches, make_tree):
    before = descriptors()
    on, tree = make_watches(), make_tree()
    begun = on.begin(str(tree))
    assert watch(on, tree)
    assert descriptors() == before + 1
    on.close()
    on.close()
    assert descriptors() == before
    assert not on.quiet(str(tree)) and not watch(on, tree)
    on.enter(begun, str(tree), "")
    on.end(begun)
    on.drop(begun)
    assert not on.quiet(str(tree)) and descriptors() == before


def test_from_many_threads(make_watches, make_tree):
    on = make_watches()
    trees = [make_tree(f"t{number}", 20) for number in range(6)]
    failed: list[BaseException] = []

    def work(tree: Path, number: int) -> None:
        try:
            for turn in range(30):
                watch(on, tree)
                extra = tree / f"extra{number}"
                extra.mkdir()
                assert not on.quiet(str(tree))
                watch(on, tree)
                extra.rmdir()
                assert not on.quiet(str(tree))
                if turn % 5 == number:
                    on.forget(str(tree))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(tree, number)) for number, tree in enumerate(trees)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert all(watch(on, tree) for tree in trees)
    assert len(on._owners) == 6 * 25


# --- in the list ---------------------------------------------------------------------------------


@pytest.fixture
def scans(monkeypatch) -> list[str]:
    """Trees whose files were read."""
    read: list[str] = []
    real = status._scan

    def counted(top: str, *rest: object) -> object:
        read.append(os.path.basename(top))
        return real(top, *rest)

    monkeypatch.setattr(status, "_scan", counted)
    return read


class Listing:
    """A repository with a worktree ``x``, both read and remembered."""

    def __init__(self, domain: object, root: Path, place: Path) -> None:
        self.domain, self.root, self.place = domain, root, place
        self.statuses = domain.worktrees._statuses

    async def read(self) -> object:
        """What is told of ``x``, when all is remembered."""
        found = (await self.domain.listed(self.root))["x"]
        while self.statuses._scans:
            await asyncio.wait(list(self.statuses._scans.values()))
        return found.changes


@pytest.fixture
def make_listing(domain, repository, scans) -> Iterator[Callable[[], Awaitable[Listing]]]:
    async def make() -> Listing:
        root = repository(files={"a": "1\n", "s/b": "1\n", ".gitignore": "build/\n*.log\n"})
        place = Path((await domain.add(root, "x")).path)
        (place / "build").mkdir()
        (place / "build" / "old").write_text("")  # git tells of no empty folder
        (place / "x.log").write_text("")
        listing = Listing(domain, root, place)
        deadline = time.monotonic() + 20
        while len(listing.statuses._seen) < 2 and time.monotonic() < deadline:
            await listing.read()
        scans.clear()
        return listing

    yield make
    domain.worktrees.close()


async def until_old(path: Path) -> None:
    """Wait until the last change of ``path`` is no longer younger than a time stamp can tell."""
    while time.time_ns() - path.stat().st_ctime_ns < 200_000_000:
        await asyncio.sleep(0.02)


async def test_an_unchanged_tree_is_not_read_again(domain, make_listing, scans):
    listing = await make_listing()
    before = domain.git.started
    for _ in range(3):
        await listing.read()
    assert scans == []
    assert domain.git.started - before == 3 * 3
    (listing.place / "build" / "new").write_text("")
    (listing.place / "x.log").write_text("longer")
    await listing.read()
    assert scans == []


async def test_a_tree_where_something_moved_is_looked_at_by_git_and_not_read(domain, make_listing, scans):
    listing = await make_listing()
    before = domain.git.started
    (listing.place / "s" / "b").write_text("2\n")
    assert (await listing.read()).modified == 1
    assert (await listing.read()).modified == 1
    assert scans == [] and domain.git.started - before == 2 * 3 + 1
    subprocess.run(["git", "-C", listing.place, "checkout", "-q", "."], check=True)
    (listing.place / "s" / "new").write_text("")
    found = await listing.read()
    assert (found.modified, found.untracked) == (0, 1)


async def test_what_moved_and_does_not_count_is_read_once(domain, make_listing, scans):
    listing = await make_listing()
    (listing.place / "empty").mkdir()
    os.utime(listing.place / "empty", ns=(OLD, OLD))
    await until_old(listing.place)
    await listing.read()
    assert scans == ["x"]
    before = domain.git.started
    await listing.read()
    assert scans == ["x"]
    assert domain.git.started - before == 3


async def test_a_new_head_is_seen_in_a_tree_where_nothing_moved(domain, make_listing, scans):
    listing = await make_listing()
    subprocess.run(["git", "-C", listing.place, "rm", "-q", "--cached", "a"], check=True)
    found = await listing.read()
    assert (found.modified, found.untracked) == (1, 1)


async def test_quiet_is_not_believed_for_ever(domain, make_listing, scans, monkeypatch):
    listing = await make_listing()
    monkeypatch.setattr(status, "_FRESH", -1.0)
    before = domain.git.started
    await listing.read()
    assert set(scans) == {"project", "x"}
    assert domain.git.started - before == 3 + 2


async def test_where_nothing_can_be_watched_the_files_are_read(domain, make_listing, scans):
    listing = await make_listing()
    domain.worktrees.close()
    await listing.read()  # of what was watched there may be no signature
    scans.clear()
    before = domain.git.started
    await listing.read()
    await listing.read()
    assert sorted(scans) == ["project", "project", "x", "x"]
    assert domain.git.started - before == 2 * 3


@pytest.mark.parametrize("watched", [True, False])
async def test_what_is_removed_before_it_is_remembered_is_seen(domain, make_listing, monkeypatch, watched):
    """At the top of the tree: a removal shows in nothing but the folder's own time."""
    listing = await make_listing()
    (listing.place / "top").write_text("")
    await listing.read()
    time.sleep(0.15)
    places = {"_scan": listing.statuses, "keep": listing.statuses._watches}
    real = {name: getattr(place, name) for name, place in places.items()}

    def late(name: str) -> Callable[..., object]:
        def work(path: str, ignored: frozenset[str]) -> object:
            (listing.place / "top").unlink(missing_ok=True)
            return real[name](path, ignored)

        return work

    for name, place in places.items():
        monkeypatch.setattr(place, name, late(name))
    if not watched:
        domain.worktrees.close()
        listing.statuses._seen.clear()
    (listing.place / "a").write_text("2\n")
    assert (await listing.read()).untracked == 1
    assert (await listing.read()).untracked == 0
