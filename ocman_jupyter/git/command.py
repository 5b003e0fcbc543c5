"""The one place that starts git: environment, limits, cancellation, and what its errors mean."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from ocman_jupyter import errors
from ocman_jupyter.errors import GitMissing, IndexLocked, NoSuchDirectory, NotARepository, OcmanError

if TYPE_CHECKING:
    from ocman_jupyter.settings import OcmanSettings

T = TypeVar("T")

Take = Callable[[bytes], bool]
"""Called in the worker thread with output as it comes; ``False`` = that is enough, the rest is not wanted."""

# What a hook, `git -c` or a stray export sets; it would beat -C, the working directory and our own options.
_LOCATING = frozenset(
    [
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIFF_OPTS",
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_GLOB_PATHSPECS",
        "GIT_GRAFT_FILE",
        "GIT_ICASE_PATHSPECS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INDEX_VERSION",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_LITERAL_PATHSPECS",
        "GIT_NAMESPACE",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
        "LANGUAGE",
    ]
)
_LOCK_FILE = re.compile(rb"[Uu]nable to create '(?P<path>.+?\.lock)': File exists", re.DOTALL)
_UNSAFE = re.compile(rb"(?:dubious ownership in|unsafe) repository (?:at |\()?'(?P<path>.+?)'", re.DOTALL)
_STUMBLED = re.compile(rb"fatal: .*worktrees/[^/\n]+/(commondir|gitdir|HEAD)\b")
"""git dies when it meets a worktree that another git is just making; a moment later it does not."""
_ATTEMPTS = 8
_CHUNK = 1 << 16
ANY = range(-255, 256)
"""Exit codes of a git whose outcome is looked at, whatever it says."""
_GRACE = 5.0
"""Seconds a cancelled write may take to tidy up before it is killed."""
_GROUP_GRACE = 2.0


def clean_environment() -> dict[str, str]:
    """Our environment without the variables that locate a repository, and with plain English output."""
    env = {name: value for name, value in os.environ.items() if name not in _LOCATING}
    env["LC_ALL"] = "C"
    env["GIT_TERMINAL_PROMPT"] = "0"
    return env


@dataclass(frozen=True)
class Completed:
    """A git that ended: exit code and raw output."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 survive a round trip to a path."""
        return self.out.decode("utf-8", "surrogateescape")

    @property
    def complaint(self) -> str:
        """Standard error for a person to read."""
        return self.err.decode("utf-8", "replace").strip()


class GitFailed(errors.GitFailed):
    """git ended with an error that no caller expected: its own text is what a person needs."""

    def __init__(self, args: tuple[str, ...], completed: Completed) -> None:
        self.completed = completed
        lines = completed.complaint.splitlines()
        said = lines[-1] if lines else f"exit code {completed.code}"
        super().__init__(
            f"git {args[0]} failed: {said}",
            hint="Run the same git command in a terminal to see more.",
            details={
                "command": ["git", *args],
                "exit_code": completed.code,
                "output": completed.complaint[-4000:],
            },
        )


class _Call:
    """One process: started in a worker thread, stopped from any thread."""

    def __init__(
        self, argv: list[str], env: dict[str, str], stdin: bytes | None, to_files: bool, take: Take | None
    ) -> None:
        self._argv, self._env, self._stdin = argv, env, stdin
        self._files: tuple[BinaryIO, BinaryIO] | None = None
        self._to_files = to_files
        self._take = take
        self.taken = False
        """Whether some of the output was handed on already."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self.started: float | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def run(self, on_start: Callable[[int], None] | None) -> Completed:
        # Output of a write goes to files: a daemon that a hook leaves behind would hold a pipe open for
        # ever, and when we are killed git must be able to finish instead of dying of SIGPIPE.
        if self._to_files:
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                self._files = (out, err)
                process = self._start(out, err, on_start)
                if self._stdin is not None and process.stdin:
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.write(self._stdin)
                        process.stdin.close()
                process.wait()
                self._files = None
                return Completed(process.returncode, _content(out), _content(err))
        if self._take is not None:
            return self._hand_on(self._take, on_start)
        process = self._start(subprocess.PIPE, subprocess.PIPE, on_start)
        out_bytes, err_bytes = process.communicate(self._stdin)
        return Completed(process.returncode, out_bytes, err_bytes)

    def _hand_on(self, take: Take, on_start: Callable[[int], None] | None) -> Completed:
        """Give the output away as it comes, until ``take`` has enough."""
        enough = False
        with tempfile.TemporaryFile() as err:
            process = self._start(subprocess.PIPE, err, on_start)
            assert process.stdout is not None
            try:
                with process.stdout as out:
                    while not enough and (chunk := os.read(out.fileno(), _CHUNK)):
                        self.taken = True
                        enough = not take(chunk)
            finally:
                if enough or sys.exc_info()[0] is not None:
                    self.stop(signal.SIGKILL)
                process.wait()
            return Completed(0 if enough else process.returncode, b"", _content(err))

    def _start(
        self, out: int | BinaryIO, err: int | BinaryIO, on_start: Callable[[int], None] | None
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise asyncio.CancelledError
            self._process = process = subprocess.Popen(
                self._argv,
                env=self._env,
                cwd="/",  # git refuses to run where the server's own directory was removed
                stdin=subprocess.DEVNULL if self._stdin is None else subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self.started = time.monotonic()
        if on_start:
            on_start(process.pid)
        return process

    def stop(self, number: int, kill: bool = False) -> None:
        """Signal the process and all that it started; ``kill``: itself at once."""
        with self._lock:
            self._stopped = True
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    if kill:
                        os.kill(self._process.pid, signal.SIGKILL)
                    os.killpg(self._process.pid, number)

    def kill_rest(self) -> None:
        """Kill what it left behind."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def group_lives(self) -> bool:
        """Is anything left of what it started?"""
        if self._process is None:
            return False
        try:
            os.killpg(self._process.pid, 0)
        except OSError:
            return False
        return True

    def errors_since(self, offset: int) -> bytes:
        """What it wrote to standard error after ``offset``, while it runs."""
        files = self._files
        if files is None:
            return b""
        try:
            return os.pread(files[1].fileno(), 65536, offset)
        except (OSError, ValueError):
            return b""


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


class Git:
    """Runs git in worker threads, a bounded number at a time.

    Reads and writes have places of their own: a hook that takes minutes never keeps a look at
    another worktree waiting.
    """

    def __init__(self, settings: OcmanSettings) -> None:
        self._command = settings.git_command
        self._timeout = settings.git_timeout
        self.processes = settings.git_processes or max(2, os.cpu_count() or 2)
        self.checkout_workers = settings.checkout_workers or os.cpu_count() or 1
        self.started = 0
        """How many processes were started so far."""
        self._reads = ThreadPoolExecutor(self.processes, thread_name_prefix="ocman-git")
        self._writes = ThreadPoolExecutor(max(4, self.processes), thread_name_prefix="ocman-git-write")
        self._disk = ThreadPoolExecutor(4, thread_name_prefix="ocman-disk")
        self._background = ThreadPoolExecutor(1, thread_name_prefix="ocman-disk-later")

    async def run(
        self,
        *args: str,
        cwd: str,
        write: bool = False,
        ok: Collection[int] = (0,),
        input: bytes | None = None,
        deadline: float | None = None,
        config: Mapping[str, str] | None = None,
        progress: Callable[[bytes], None] | None = None,
        on_start: Callable[[int], None] | None = None,
        index: str | None = None,
        take: Take | None = None,
        tidies: bool = True,
    ) -> Completed:
        """Run ``git -C cwd *args``.

        Parameters
        ----------
        write:
            The user's hooks run, locks are taken, and it may take as long as it takes.  A read runs
            neither hooks nor a file system monitor and leaves the index alone.
        ok:
            Exit codes that are an answer.
        deadline:
            Seconds after which it is ended; reads have one anyway.
        progress:
            Called on the event loop with what a write says on standard error as it comes.
        on_start:
            Called in the worker thread with the pid.
        index:
            A private index file to use in place of the checkout's own.
        tidies:
            Cancelled, git may take back what it began.  Where it would remove a whole folder, with what others
            put there meanwhile, it is killed instead (what it started is asked to end as ever).
        take:
            Gets the output of a read that has no ``input``; ``out`` is empty then, whatever its size.

        Raises
        ------
        GitMissing, IndexLocked, NoSuchDirectory, NotARepository
            The latter also for a refusal (``safe.directory``), with git's text.
        GitFailed
            Any other exit code.
        """
        argv = [self._command, "-C", cwd]
        env = clean_environment()
        if index is not None:
            env["GIT_INDEX_FILE"] = index
        if not write:
            argv += ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
            env["GIT_OPTIONAL_LOCKS"] = "0"
            env["GIT_NO_LAZY_FETCH"] = "1"
            deadline = self._timeout if deadline is None else deadline
        for name, value in (config or {}).items():
            argv += ["-c", f"{name}={value}"]
        for attempt in range(_ATTEMPTS):
            call = _Call([*argv, *args], env, input, to_files=write, take=take)
            self.started += 1
            try:
                completed = await self._finish(call, on_start, write, deadline, progress, tidies)
            except OSError as error:
                raise GitMissing(
                    f"git cannot be started: {error.strerror or error}", details={"command": self._command}
                ) from error
            if completed.code == 0 or call.taken or not _STUMBLED.search(completed.err):
                break
            await asyncio.sleep(0.01 * (attempt + 1))
        if completed.code not in ok:
            raise explain(args, completed, cwd)
        return completed

    async def _finish(
        self,
        call: _Call,
        on_start: Callable[[int], None] | None,
        write: bool,
        deadline: float | None,
        progress: Callable[[bytes], None] | None,
        tidies: bool,
    ) -> Completed:
        loop = asyncio.get_running_loop()
        pool = self._writes if write else self._reads
        future = loop.run_in_executor(pool, call.run, on_start)
        expired = False
        offset = 0
        try:
            if deadline is None and progress is None:
                return await asyncio.shield(future)
            while True:
                wait = 0.2 if progress else deadline
                if deadline is not None and call.started is not None:
                    left = call.started + deadline - time.monotonic()
                    if left <= 0:
                        expired = True
                        call.stop(signal.SIGKILL)
                        await asyncio.wait({future})
                        break
                    wait = min(wait or left, left)
                await asyncio.wait({future}, timeout=wait)
                if progress and not future.done():
                    said = call.errors_since(offset)
                    offset += len(said)
                    if said:
                        progress(said)
                if future.done():
                    break
        except asyncio.CancelledError:
            await self._stop(call, future, gently=write, tidies=tidies)
            raise
        completed = future.result()
        if expired:
            said = f"git did not finish within {deadline:g} s and was ended.\n".encode()
            return Completed(completed.code or -signal.SIGKILL, completed.out, completed.err + said)
        return completed

    async def _stop(
        self, call: _Call, future: asyncio.Future[Completed], gently: bool, tidies: bool
    ) -> None:
        """End the process and wait until it is gone: nobody may undo next to a git that still works."""
        call.stop(signal.SIGTERM if gently else signal.SIGKILL, kill=not tidies)
        loop = asyncio.get_running_loop()
        kill = loop.call_later(_GRACE, call.stop, signal.SIGKILL)
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({future})
        kill.cancel()
        # What git itself had started (`git branch` of `worktree add -b`) may outlive it for a moment.
        deadline = time.monotonic() + (_GROUP_GRACE if tidies else _GRACE)
        while call.group_lives:
            if time.monotonic() > deadline:
                if tidies:
                    break
                call.kill_rest()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.005)
        with contextlib.suppress(BaseException):
            future.result()

    async def disk(self, work: Callable[..., T], *args: object) -> T:
        """Run ``work(*args)``, which looks at files, off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work, *args)

    async def later(self, work: Callable[[], T]) -> T:
        """Like :meth:`disk`, for what nobody waits for: one at a time, and in nobody's way."""
        return await asyncio.get_running_loop().run_in_executor(self._background, work)

    async def version(self) -> tuple[str, str] | None:
        """Path and version of git, or ``None`` when there is none that runs."""
        path = shutil.which(self._command)
        if path is None:
            return None
        try:
            done = await self.run("--version", cwd="/", deadline=10)
        except OcmanError:
            return None
        found = re.search(r"\d+(\.\d+)+", done.text)
        return path, found.group(0) if found else done.text.strip()

    def close(self) -> None:
        """Give the worker threads back."""
        for pool in (self._reads, self._writes, self._disk, self._background):
            pool.shutdown(wait=False)


def explain(args: tuple[str, ...], completed: Completed, cwd: str) -> OcmanError:
    """The typed error for a git that failed."""
    err = completed.err
    locked = _LOCK_FILE.search(err)
    if locked:
        path = os.fsdecode(locked["path"])
        try:
            age: float | None = round(max(0.0, time.time() - os.lstat(path).st_mtime), 1)
        except OSError:
            age = None
        since = f" (it is {age:g} s old)" if age is not None else ""
        return IndexLocked(
            f"Another git process holds {path}{since}.", details={"path": path, "age_seconds": age}
        )
    unsafe = _UNSAFE.search(err)
    if unsafe:
        path = os.fsdecode(unsafe["path"])
        return NotARepository(
            completed.complaint.splitlines()[0],
            hint=f"If you trust it: git config --global --add safe.directory '{path}'",
            details={"path": path, "output": completed.complaint},
        )
    if b"cannot change to" in err:
        return NoSuchDirectory(
            f"git cannot enter {cwd}.", details={"path": cwd, "output": completed.complaint}
        )
    if b"not a git repository" in err:
        return NotARepository(f"{cwd} is not inside a git repository.", details={"path": cwd})
    return GitFailed(args, completed)
