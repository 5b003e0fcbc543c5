"""Ignored files come along to a worktree: only those that are named, and nothing is touched, followed or left torn."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from ocman_jupyter.git import carry as carrying
from ocman_jupyter.git import removal
from ocman_jupyter.git.carry import Carry


@pytest.fixture
def carry(domain):
    return Carry(domain.git)


@pytest.fixture
def make(repository, git, domain):
    """``make({path: content}, include=…, link=…)``: a repository with ignored files, and a bare new worktree of it."""

    def build(files: dict[str, str], include: str = "", link: str = "", ignore: str = "*.csv\n.env\n/data/\n") -> Path:
        root = repository(files={".gitignore": ignore, "README.md": "hello\n"})
        for name, patterns in ((".worktreeinclude", include), (".worktreelink", link)):
            if patterns:
                (root / name).write_text(patterns)
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        return root

    return build


async def both(carry, domain, root: Path, branch: str = "x", **options) -> tuple[Path, object]:
    """A new worktree, and what was carried to it."""
    added = await domain.add(root, branch, carry=False)
    return Path(added.path), await carry.carry(await planned(domain, carry, root), added.path, **options)


async def planned(domain, carry, root: Path) -> carrying.CarryPlan:
    return await carry.plan(await domain.resolve(root))


def codes(plan) -> list[str]:
    return [one.code for one in plan.warnings]


async def test_files_that_match_and_are_ignored_come_along(carry, domain, make, git):
    root = make(
        {"data/a.csv": "1\n", ".env": "KEY=1\n", "sub/b.csv": "2\n", "sub/c.txt": "new\n", "data/z.bin": "3\n"},
        include="*.csv\n.env\nc.txt\n",
    )
    (root / ".env").chmod(0o600)
    os.utime(root / "data/a.csv", (1_000_000_000, 1_000_000_000))
    place, done = await both(carry, domain, root)
    assert [(one.path, one.bytes, one.how) for one in done.told] == [
        (".env", 6, "copy"), ("data/a.csv", 2, "copy"), ("sub/b.csv", 2, "copy")
    ]  # fmt: skip
    assert (place / ".env").read_text() == "KEY=1\n" and (place / ".env").stat().st_mode & 0o777 == 0o600
    assert (place / "data/a.csv").stat().st_mtime == 1_000_000_000
    assert not (place / "sub/c.txt").exists() and not (place / "data/z.bin").exists()
    assert git(place, "status", "--porcelain") == ""


async def test_without_the_files_no_process_runs(carry, domain, make):
    root = make({"data/a.csv": "1\n"})
    await domain.resolve(root)
    before = domain.git.started
    plan = await planned(domain, carry, root)
    assert (plan.told, domain.git.started) == ([], before)


async def test_the_plan_changes_nothing_and_says_sizes(carry, domain, make):
    root = make({f"data/{n}/{m}.csv": "12345\n" for n in range(30) for m in range(10)}, include="data/\n")
    plan = await planned(domain, carry, root)
    assert len(plan.copies) == 300
    assert len(plan.told) == 30 and (plan.told[0].path, plan.told[0].bytes) == ("data/0/", 60)
    assert not (root.parent / ".worktrees").exists()


async def test_what_is_there_is_never_touched(carry, domain, make):
    root = make({".env": "theirs\n", "data/a.csv": "theirs\n"}, include=".env\n*.csv\n")
    added = await domain.add(root, "x", carry=False)
    place = Path(added.path)
    (place / ".env").write_text("mine\n")
    (place / "data").mkdir()
    (place / "data/a.csv").symlink_to("nowhere")
    done = await carry.carry(await planned(domain, carry, root), added.path)
    assert (done.told, done.warnings) == ([], [])
    assert (place / ".env").read_text() == "mine\n" and os.readlink(place / "data/a.csv") == "nowhere"


async def test_what_this_branch_tracks_or_does_not_ignore_is_not_carried(carry, domain, make, git):
    root = make({"kept.csv": "main's\n", ".env": "KEY=1\n"}, include="*.csv\n.env\n")
    git(root, "checkout", "-q", "-b", "other")
    (root / ".gitignore").write_text("/data/\n")
    git(root, "add", "-f", ".gitignore", "kept.csv")
    git(root, "-c", "user.name=T", "-c", "user.email=t@e", "commit", "-qm", "2")
    git(root, "checkout", "-q", "main")
    (root / "kept.csv").write_text("main's\n")
    added = await domain.add(root, "x", base="other", carry=False)
    Path(added.path, "kept.csv").unlink()
    done = await carry.carry(await planned(domain, carry, root), added.path)
    assert done.told == [] and codes(done) == ["carry_not_ignored"]
    assert sorted(os.listdir(added.path)) == [".git", ".gitignore", "README.md"]


async def test_links_are_not_followed_out_of_either_side(carry, domain, make, git, tmp_path):
    root = make({"data/in.csv": "1\n"}, include="data/\n*.csv\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text("secret\n")
    (root / "data/away").symlink_to(outside)
    (root / "data/up.csv").symlink_to("../../../outside/secret.csv")
    (root / "data/loop.csv").symlink_to("loop.csv")
    (root / "data/beside.csv").symlink_to("in.csv")
    added = await domain.add(root, "x", carry=False)
    place = Path(added.path)
    done = await carry.carry(await planned(domain, carry, root), added.path)
    assert {one.path for one in done.told} == {
        "data/away", "data/beside.csv", "data/in.csv", "data/loop.csv", "data/up.csv"
    }  # fmt: skip
    assert os.readlink(place / "data/away") == str(outside)
    assert os.readlink(place / "data/beside.csv") == "in.csv"
    assert os.readlink(place / "data/up.csv") == os.path.normpath(root / "data/../../../outside/secret.csv")
    shutil.rmtree(place / "data")
    (place / "data").symlink_to(outside)
    done = await carry.carry(await planned(domain, carry, root), added.path)
    assert done.told == [] and codes(done) == ["carry_failed"]
    assert sorted(os.listdir(outside)) == ["secret.csv"]


async def test_big_folders_are_linked(carry, domain, make, git):
    root = make({"data/raw/a.bin": "12345\n", "data/b.csv": "1\n", "models/m.bin": "1\n"},
                include="data/\nmodels/\n", link="raw/\nmodels/\n", ignore="/data/\n/models\n")  # fmt: skip
    place, done = await both(carry, domain, root)
    assert [(one.path, one.bytes, one.how) for one in done.told] == [
        ("data/raw", 6, "link"), ("models", 2, "link"), ("data/b.csv", 2, "copy")
    ]  # fmt: skip
    assert os.readlink(place / "data/raw") == str(root / "data/raw")
    assert os.readlink(place / "models") == str(root / "models")
    assert git(place, "status", "--porcelain") == ""


async def test_where_git_ignores_only_a_folder_its_entries_are_linked(carry, domain, make, git):
    root = make({"data/raw/a.bin": "1\n", "data/b.csv": "2\n"}, link="/data/\n")
    place, done = await both(carry, domain, root)
    assert [(one.path, one.how) for one in done.told] == [("data", "link")]
    assert (place / "data").is_dir() and not (place / "data").is_symlink()
    assert os.readlink(place / "data/raw") == str(root / "data/raw")
    assert git(place, "status", "--porcelain") == ""


async def test_removing_what_is_linked_leaves_the_source(carry, domain, make):
    root = make({"data/raw/a.bin": "1\n"}, link="/data/\n")
    place, _ = await both(carry, domain, root)
    shutil.rmtree(place)
    assert (root / "data/raw/a.bin").read_text() == "1\n"


async def test_a_repository_among_them_is_named_and_left(carry, domain, make, git):
    root = make({"data/a.csv": "1\n"}, include="data/\n")
    git(root, "init", "-q", "data/nested")
    (root / "data/nested/f").write_text("1\n")
    place, done = await both(carry, domain, root)
    assert codes(done) == ["carry_repository"] and not (place / "data/nested").exists()


async def test_a_pipe_does_not_block(carry, domain, make):
    root = make({"data/a.csv": "1\n"}, include="data/\n")
    os.mkfifo(root / "data/pipe")
    place, done = await asyncio.wait_for(both(carry, domain, root), 30)
    assert [one.path for one in done.told] == ["data/a.csv"] and done.warnings == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
async def test_unreadable_files_are_named_and_the_rest_comes(carry, domain, make):
    root = make({"data/a.csv": "1\n", "data/b.csv": "2\n"}, include="data/\n")
    (root / "data/a.csv").chmod(0)
    place, done = await both(carry, domain, root)
    assert codes(done) == ["carry_failed"] and (place / "data/b.csv").exists()


async def test_a_full_disk_leaves_whole_files_only(carry, domain, make, monkeypatch):
    root = make({f"data/{n}.csv": "12345\n" for n in range(5)}, include="data/\n")
    write, count = os.write, iter(range(100))

    def full(file: int, content: bytes) -> int:
        if bytes(content) == b"12345\n" and next(count) == 2:
            write(file, b"12")
            raise OSError(28, "No space left on device")
        return write(file, content)

    monkeypatch.setattr(carrying.os, "write", full)
    monkeypatch.setattr(carrying, "_FICLONE", 0)
    place, done = await both(carry, domain, root)
    assert codes(done) == ["carry_incomplete"]
    assert [path.read_text() for path in sorted((place / "data").iterdir())] == ["12345\n"] * 2
    assert len(done.told) == 2


async def test_a_file_that_changes_while_it_is_copied_is_not_left_mixed(carry, domain, make, monkeypatch):
    root = make({"data/a.csv": "1" * 1000}, include="data/\n")
    read = os.read

    def changing(file: int, size: int) -> bytes:
        content = read(file, size)
        if content.startswith(b"111"):
            with open(root / "data/a.csv", "a") as source:
                source.write("2")
        return content

    monkeypatch.setattr(carrying.os, "read", changing)
    monkeypatch.setattr(carrying, "_FICLONE", 0)
    place, done = await both(carry, domain, root)
    assert codes(done) == ["carry_failed"] and "being written to" in done.warnings[0].message
    assert not (place / "data/a.csv").exists()


async def test_cancelled_it_takes_back_what_it_made(carry, domain, make, monkeypatch):
    root = make({f"data/{n}.csv": "1\n" for n in range(50)}, include="data/\n")
    added = await domain.add(root, "x", carry=False)
    reached, go = threading.Event(), threading.Event()
    copy = carrying._Work._copy

    def slow(self, source, target, name):
        copy(self, source, target, name)
        if len(self.done) == 10:
            reached.set()
            go.wait(20)

    monkeypatch.setattr(carrying._Work, "_copy", slow)
    task = asyncio.ensure_future(carry.carry(await planned(domain, carry, root), added.path))
    await asyncio.to_thread(reached.wait, 20)
    mine = Path(added.path, "data/0.csv")
    if mine.exists():
        mine.write_text("mine now\n")
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = list(Path(added.path, "data").glob("*")) if Path(added.path, "data").exists() else []
    assert [path.read_text() for path in left] in ([], ["mine now\n"])


async def test_after_a_kill_torn_files_are_completed_and_others_kept(carry, domain, make):
    root = make({"data/a.csv": "12345\n", "data/b.csv": "12345\n", "data/c.csv": "12345\n"}, include="data/\n")
    added = await domain.add(root, "x", carry=False)
    data = Path(added.path, "data")
    data.mkdir()
    (data / "a.csv").write_text("12")
    (data / "b.csv").write_text("other")
    done = await carry.carry(await planned(domain, carry, root), added.path, resumes=True)
    assert [path.read_text() for path in sorted(data.iterdir())] == ["12345\n", "other", "12345\n"]
    assert [one.path for one in done.told] == ["data/a.csv", "data/c.csv"]


async def test_odd_names(carry, domain, make):
    names = ["data/new\nline.csv", "data/ü.csv", "data/-dash.csv", "data/with space.csv", "data/" + "x" * 251 + ".csv"]
    root = make(dict.fromkeys(names, "1\n"), include="data/\n")
    raw = os.fsencode(root) + b"/data/\xff.csv"
    with open(raw, "wb") as file:
        file.write(b"1\n")
    place, done = await both(carry, domain, root)
    assert len(done.told) == 6
    assert sorted(os.listdir(os.fsencode(place) + b"/data")) == sorted(os.listdir(os.fsencode(root) + b"/data"))
    assert all(one.path.encode() for one in done.told)


async def test_it_says_how_far_it_is(carry, domain, make, monkeypatch):
    root = make({"data/a.csv": "1" * 1000, "data/b.csv": "1" * 1000}, include="data/\n")
    go = threading.Event()
    said: list[float | None] = []
    copy = carrying._Work._copy

    def slow(self, source, target, name):
        copy(self, source, target, name)
        go.wait(20)

    def progress(message: str, fraction: float | None) -> None:
        said.append(fraction)
        go.set()

    monkeypatch.setattr(carrying._Work, "_copy", slow)
    await both(carry, domain, root, progress=progress)
    assert said[0] == 0.5


# --- as a part of making a worktree --------------------------------------------------------------


async def test_a_new_worktree_gets_them_and_a_reused_one_does_not(domain, make, git):
    root = make({".env": "KEY=1\n", "data/a.csv": "1\n"}, include=".env\n", link="/data/\n")
    plan = await domain.worktrees.plan(await domain.resolve(root), "x")
    added = await domain.add(root, "x")
    assert plan.carry == added.carried
    assert [(one.path, one.how) for one in added.carried] == [("data", "link"), (".env", "copy")]
    Path(added.path, ".env").unlink()
    again = await domain.add(root, "x")
    assert again.reused and again.carried == [] and not Path(added.path, ".env").exists()
    without = await domain.add(root, "y", carry=False)
    assert without.carried == [] and not Path(without.path, ".env").exists()


async def test_a_worktree_that_was_missing_gets_them_again(domain, make):
    root = make({".env": "KEY=1\n"}, include=".env\n")
    added = await domain.add(root, "x")
    shutil.rmtree(added.path)
    assert [one.path for one in (await domain.add(root, "x")).carried] == [".env"]


async def test_a_create_that_is_cancelled_while_it_carries_leaves_nothing(domain, make, git, monkeypatch):
    root = make({f"data/{n}.csv": "1\n" for n in range(20)}, include="data/\n")
    reached, go = threading.Event(), threading.Event()
    copy = carrying._Work._copy

    def slow(self, source, target, name):
        copy(self, source, target, name)
        reached.set()
        go.wait(20)

    monkeypatch.setattr(carrying._Work, "_copy", slow)
    task = asyncio.ensure_future(domain.add(root, "x"))
    await asyncio.to_thread(reached.wait, 20)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, go.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (root.parent / ".worktrees").exists() and git(root, "branch", "--list", "x") == ""


async def test_what_the_main_checkout_has_as_well_is_no_loss(domain, make):
    root = make(
        {"data/a.csv": "1\n", "data/deep/b.csv": "2\n", ".env": "KEY=1\n", "models/m.bin": "3\n"},
        include="/data/\n.env\n", link="models/\n", ignore="*.csv\n.env\n/data/\nmodels\n",
    )  # fmt: skip
    added = await domain.add(root, "x")

    async def lost() -> list[tuple[str, list[str]]]:
        repository, worktree = await domain.worktrees.find(added.path)
        found = await removal.reasons(domain.git, domain.store, repository, worktree)
        return [(one.code, [item.path for item in one.items]) for one in found]

    assert await lost() == []
    Path(added.path, ".env").write_text("KEY=2\n")
    assert await lost() == [("ignored", [".env"])]
    same = Path(root, ".env").stat()
    os.utime(added.path + "/.env", ns=(same.st_atime_ns, same.st_mtime_ns))
    assert await lost() == [("ignored", [".env"])]
    Path(added.path, "data/deep/result.csv").write_text("new\n")
    assert await lost() == [("ignored", [".env", "data/"])]
    (root / "data/a.csv").unlink()
    (root / "models/m.bin").unlink()
    assert await lost() == [("ignored", [".env", "data/"])]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from ocman_jupyter.git import carry
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.worktrees import Worktrees
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store

data, root, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = OcmanSettings(data_dir=data)
git, store = Git(settings), Store(Path(data) / "state.db")
worktrees = Worktrees(git, store, settings)
write, count = os.write, 0

def killing(file, content):
    global count
    if bytes(content).startswith(b"carried"):
        count += 1
        if count > after:
            write(file, bytes(content)[:3])
            os.kill(os.getpid(), signal.SIGKILL)
    return write(file, content)

carry.os.write, carry._FICLONE = killing, 0

async def main():
    await worktrees.add(await worktrees.repositories.resolve(root), "x")

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [0, 3])
async def test_killed_while_it_carries_the_next_call_goes_on(domain, make, after):
    root = make({f"data/{n}.csv": f"carried {n}\n" for n in range(6)}, include="data/\n")
    arguments = [domain.settings.data_dir, str(root), str(after)]
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, *arguments)
    assert await killed.wait() == -9
    added = await domain.add(root, "x")
    assert added.reused and len(added.carried) == 6 - after
    for number in range(6):
        assert Path(added.path, f"data/{number}.csv").read_text() == f"carried {number}\n"
    assert (await domain.add(root, "x")).carried == []
