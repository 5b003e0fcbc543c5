"""Exactly one OpenCode per repository: find, launch, wait, adopt, heal, stop."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

from .. import errors
from ..settings import OcmanSettings
from ..store import Store
from . import environment, probing
from .client import OpenCodeClient, closed_on_failure
from .discovery import Discovery, Found
from .flights import Flights, Progress, Say
from .launches import Launches
from .locking import locked
from .permissions import Warnings
from .probing import Probe, Verdict
from .processes import Process
from .registry import Owner, Record, Registry
from .target import Target

__all__ = ["Change", "Instance", "Instances", "Target"]

log = logging.getLogger(__name__)

HEALTH_TRY = 1.0
"""Seconds for one try on an OpenCode that nobody knows yet: a screen's first request may hang."""
HEALTH_TRIES = 3

_BEST_FIRST = (
    Verdict.HEALTHY, Verdict.NEEDS_PASSWORD, Verdict.UNSURE, Verdict.WRONG_PROJECT, Verdict.DEAD)
"""Which port of a process speaks for it: OpenCode may listen elsewhere too, for a log-in that comes back."""

Change = Literal["running", "stopped"]


@dataclass(frozen=True)
class Instance:
    """The one running OpenCode of a repository."""

    identity: str
    root: str
    cwd: str
    url: str
    port: int
    process: Process
    owner: Owner
    tmux_session: str | None
    seeded: bool
    version: str | None
    started_at: float | None
    """Seconds since 1970."""
    log_path: str | None
    client: OpenCodeClient = field(compare=False)
    credentials: tuple[str, str | None] = field(repr=False, compare=False)
    """User name and password of its server."""
    warnings: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def pid(self) -> int:
        return self.process.pid


class Instances:
    """Finds or launches the OpenCode of each repository.  Use it from one event loop.

    ``on_change``: each is called with an instance and what became of it, when this object takes note of it.
    """

    def __init__(
        self, settings: OcmanSettings, store: Store, environ: Mapping[str, str] | None = None
    ) -> None:
        self.settings = settings
        self.registry = Registry(store)
        self.discovery = Discovery()
        self.on_change: list[Callable[[Instance, Change], None]] = []
        self._launches = Launches(settings, self.registry, environ)
        self._live: dict[str, Instance] = {}
        self._closed = False
        self._probes: Flights[str] = Flights()
        self._ensures: Flights[tuple[Instance, bool]] = Flights()
        self._finds: Flights[Instance | None] = Flights()
        self._stops: Flights[Any] = Flights()

    # --- what others call --------------------------------------------------------------------

    async def ensure(self, target: Target, progress: Progress | None = None) -> tuple[Instance, bool]:
        """The repository's instance, and whether this call launched it.

        Raises ``NoSuchDirectory``, ``OpenCodeMissing``, ``LaunchFailed``, ``LaunchTimeout``,
        ``OpenCodeNeedsPassword`` or ``OpenCodeUnreachable`` (there is one, but how it is could not be told).
        """
        instance = await self._warm(target.identity)
        if instance is not None:
            return instance, False
        (instance, launched), began = await self._ensures.join(
            target.identity, lambda say: self._find_or_launch(target, say), progress)
        return instance, launched and began

    async def probe(self, identity: str) -> Instance | None:
        """The instance that runs now, if one is known.  Launches and ends nothing.

        Raises ``OpenCodeUnreachable`` or ``OpenCodeNeedsPassword`` where that cannot be told.
        """
        instance = await self._warm(identity)
        if instance is not None:
            return instance
        record = await self.registry.get(identity)
        return await self._look_at(record) if record is not None and record.state == "running" else None

    async def find(self, target: Target) -> Instance | None:
        """The repository's instance if one runs, also a user's own that is in no record.  Launches nothing.

        Raises as :meth:`probe` does.
        """
        instance = await self.probe(target.identity)
        if instance is not None:
            return instance
        found, _ = await self._finds.join(target.identity, lambda say: self._find(target, say))
        return found

    async def known(self) -> list[Instance]:
        """All that run, by the records: what a program that has just begun adopts."""
        found = await asyncio.gather(
            *(self.probe(record.identity) for record in await self.registry.all()), return_exceptions=True)
        for one in found:
            if isinstance(one, errors.OcmanError):
                log.warning("An OpenCode was not adopted: %s", one)
            elif isinstance(one, BaseException):
                raise one
        return [one for one in found if isinstance(one, Instance)]

    def live(self) -> list[Instance]:
        """Those that this object has seen healthy, without a new look."""
        return list(self._live.values())

    def is_live(self, instance: Instance) -> bool:
        """Whether it is in use still: the client of one that was given up is closed."""
        return self._live.get(instance.identity) is instance

    async def stop(self, target: Target, progress: Progress | None = None) -> bool:
        """End the repository's instance; False: there was none.

        Raises ``NotOurs`` for one that ocman did not launch, ``OpenCodeUnreachable`` when it did not end.
        """
        stopped, _ = await self._stops.join(
            ("stop", target.identity), lambda say: self._stop(target, say), progress)
        return stopped

    async def restart(self, target: Target, progress: Progress | None = None) -> Instance:
        """End it and launch a new one, with nobody in between.  Raises as `stop` and `ensure` do."""
        instance, _ = await self._stops.join(
            ("restart", target.identity), lambda say: self._restart(target, say), progress)
        return instance

    async def close(self) -> None:
        """Let go of everything; the instances live on."""
        self._closed = True
        for flights in (self._probes, self._ensures, self._finds, self._stops):
            await flights.close()
        live, self._live = list(self._live.values()), {}
        for instance in live:
            await instance.client.aclose()

    # --- warm --------------------------------------------------------------------------------

    async def _warm(self, identity: str) -> Instance | None:
        """The one that was healthy before, if it is still that process and answers: no lock, no scan."""
        instance = self._live.get(identity)
        if instance is None:
            return None
        if not instance.process.runs:
            await self._forget(instance)
            return None
        try:
            await self._probes.join(
                identity, lambda say: instance.client.health(self.settings.probe_timeout, fresh=False))
        except errors.OcmanError:
            return None  # what that means is found out under the lock
        return instance if self.is_live(instance) else None

    # --- find, or launch, under the repository's lock ----------------------------------------

    async def _find(self, target: Target, say: Say) -> Instance | None:
        async with locked(self.settings, target.identity, say):
            record = await self.registry.get(target.identity)
            if record is not None and record.state != "running":
                return None  # an ensure or a stop finishes what was begun there
            return self._live.get(target.identity) or await self._discover(target)

    async def _find_or_launch(self, target: Target, say: Say) -> tuple[Instance, bool]:
        await self._check_directory(target)
        async with locked(self.settings, target.identity, say):
            record = await self.registry.get(target.identity)
            instance = await self._take_up(target, record, say) if record is not None else None
            if instance is None:
                instance = await self._discover(target)
            if instance is not None:
                return instance, False
            return await self._remember(*await self._launches.launch(target, say)), True

    async def _take_up(self, target: Target, record: Record, say: Say) -> Instance | None:
        """Go on from what a record says; ``None``: nothing of it is left."""
        if record.state == "stopping":
            say("Ending the OpenCode that was being stopped")
            await self._launches.end(record)
            return None
        if record.state == "launching":
            launched = await self._launches.finish(target, record, say)
            return await self._remember(*launched) if launched else None
        instance = await self._look_at(record)
        if instance is None:
            await self._forget(self._live.get(record.identity))
            if record.owner == "ocman":
                await self._launches.end(record)
            else:
                await self.registry.delete(record.identity)
        return instance

    async def _look_at(self, record: Record) -> Instance | None:
        """The instance of a record; ``None``: it is dead, or serves something else.  Raises when unsure."""
        async with closed_on_failure(self._launches.client(record)) as client:
            seen = await probing.look(
                client, record.process or Process(0, ""), probing.is_at(record.cwd),
                health_timeout=self.settings.probe_timeout, request_timeout=self.settings.request_timeout)
            if seen.verdict is Verdict.HEALTHY:
                return await self._remember(dataclasses.replace(record, version=seen.version), client)
        await client.aclose()
        odd = seen.verdict is Verdict.WRONG_PROJECT and seen.version is None
        if odd or seen.verdict in (Verdict.UNSURE, Verdict.NEEDS_PASSWORD):
            raise _reason(seen, record.root, record.pid)
        return None

    async def _discover(self, target: Target) -> Instance | None:
        """A user's own in this repository.  It is never ended, and none is launched beside it."""
        async with AsyncExitStack() as opened:
            return await self._choose(target, opened)

    async def _choose(self, target: Target, opened: AsyncExitStack) -> Instance | None:
        """``opened`` hears of every client that is not closed here."""
        usable: list[tuple[Record, OpenCodeClient]] = []
        doubtful: list[tuple[Found, Probe]] = []
        ours = {record.process: record for record in await self.registry.all() if record.owner == "ocman"}
        for found in await self.discovery.find(target.cwd, target.belongs):
            ours_of_old = ours.get(found.process)
            record, client, seen = await self._look_closer(found, target, ours_of_old)
            await opened.enter_async_context(closed_on_failure(client))
            if seen.verdict is Verdict.HEALTHY:
                usable.append((dataclasses.replace(record, version=seen.version), client))
                continue
            await client.aclose()
            if seen.verdict in (Verdict.NEEDS_PASSWORD, Verdict.UNSURE):
                doubtful.append((found, seen))
            elif ours_of_old is not None and not await asyncio.to_thread(os.path.isdir, ours_of_old.cwd):
                # Its repository was moved: it still serves the old path, where nothing is.
                await self._launches.end(ours_of_old)
        if not usable:
            # One that wants a password says more than one that says nothing.
            doubtful.sort(key=lambda one: one[1].verdict is not Verdict.NEEDS_PASSWORD)
            for found, seen in doubtful:
                raise _reason(seen, target.root, found.pid)
            return None
        (record, client), *others = usable
        for _, other in others:
            await other.aclose()
        warnings: Warnings = []
        unused = [one.pid for one, _ in others] + [found.pid for found, _ in doubtful]
        if unused:
            warnings.append((
                "several_instances", f"More than one OpenCode runs in this repository: pid {record.pid} is "
                f"used, not {', '.join(map(str, unused))}."))
        seeded = await self._launches.is_seeded(client, record.cwd, target.worktrees_root)
        record = dataclasses.replace(record, seeded=seeded)
        old = ours.get(record.process)
        if old is not None and old.identity != record.identity:
            await self.registry.delete(old.identity)
        await self.registry.put(record)
        return await self._remember(record, client, warnings)

    async def _look_closer(
        self, found: Found, target: Target, ours: Record | None
    ) -> tuple[Record, OpenCodeClient, Probe]:
        """The best of what a process that was found listens on.

        ``ours``: its record, if ocman launched it for a repository of another identity.
        """
        environ = self._launches.environ()
        known = ours or Record(
            identity=target.identity, state="running", root=target.root, cwd=found.cwd, owner="user",
            username=environ.get(environment.USERNAME) or "opencode",
            password=environ.get(environment.PASSWORD) or None, started_at=found.started_at)
        answers = []
        async with AsyncExitStack() as opened:
            for listener in found.listeners:
                record = dataclasses.replace(
                    known, state="running", identity=target.identity, root=target.root, cwd=found.cwd,
                    url=listener.url, port=listener.port, pid=found.pid, pid_mark=found.process.mark)
                client = await opened.enter_async_context(closed_on_failure(self._launches.client(record)))
                seen = await probing.look(
                    client, found.process, probing.is_inside(target.belongs), health_timeout=HEALTH_TRY,
                    request_timeout=self.settings.request_timeout, tries=HEALTH_TRIES)
                answers.append((record, client, seen))
            best, *rest = sorted(answers, key=lambda one: _BEST_FIRST.index(one[2].verdict))
            for _, client, _ in rest:
                await client.aclose()
            return best

    # --- stop --------------------------------------------------------------------------------

    async def _stop(self, target: Target, say: Say) -> bool:
        async with locked(self.settings, target.identity, say):
            return await self._stop_locked(target, say)

    async def _restart(self, target: Target, say: Say) -> Instance:
        await self._check_directory(target)
        async with locked(self.settings, target.identity, say):
            await self._stop_locked(target, say)
            return await self._remember(*await self._launches.launch(target, say))

    async def _stop_locked(self, target: Target, say: Say) -> bool:
        record = await self.registry.get(target.identity)
        if record is None or (record.owner == "user" and not (record.process and record.process.runs)):
            for found in await self.discovery.find(target.cwd, target.belongs):
                raise errors.NotOurs(details={"pid": found.pid})
            return False
        if record.owner != "ocman":
            raise errors.NotOurs(details={"pid": record.pid, "url": record.url})
        say("Stopping OpenCode")
        await self._forget(self._live.get(target.identity))
        if record.state == "launching":
            launched = await self._launches.launched(record)
            if launched is not None:
                record = dataclasses.replace(record, launch_pid=launched.pid, launch_mark=launched.mark)
        was = any(one is not None and one.runs for one in (record.process, record.launched))
        await self._launches.end(record)
        return was

    # --- pieces ------------------------------------------------------------------------------

    async def _check_directory(self, target: Target) -> None:
        if not await asyncio.to_thread(os.path.isdir, target.cwd):
            raise errors.NoSuchDirectory(details={"path": target.cwd})

    async def _remember(
        self, record: Record, client: OpenCodeClient, warnings: Warnings | None = None
    ) -> Instance:
        """Keep an instance that has just been seen healthy."""
        assert record.process is not None
        async with closed_on_failure(client):
            while (before := self._live.get(record.identity)) is not None:
                if before.process == record.process and before.url == record.url:
                    await client.aclose()
                    return before
                await self._forget(before)
            if self._closed:
                await client.aclose()
        instance = Instance(
            record.identity, record.root, record.cwd, record.url, record.port, record.process, record.owner,
            record.tmux_session, record.seeded, record.version, record.started_at, record.log_path or None,
            client, (record.username, record.password), tuple(warnings or ()))
        for code, sentence in instance.warnings:
            log.warning("%s: %s (%s)", instance.root, sentence, code)
        if not self._closed:
            self._live[record.identity] = instance
            self._changed(instance, "running")
        return instance

    async def _forget(self, instance: Instance | None) -> None:
        if instance is None:
            return
        if self.is_live(instance):
            del self._live[instance.identity]
            self._changed(instance, "stopped")
        await instance.client.aclose()

    def _changed(self, instance: Instance, change: Change) -> None:
        for callback in list(self.on_change):
            try:
                callback(instance, change)
            except Exception:
                log.exception("a callback of on_change failed")


def _reason(seen: Probe, root: str, pid: int | None) -> errors.OcmanError:
    """The error that says why an instance that is there cannot be used."""
    error = seen.error or errors.OpenCodeUnreachable()
    where: dict[str, Any] = {"directory": root, "pid": pid}
    if isinstance(error, errors.OpenCodeNeedsPassword):
        return errors.OpenCodeNeedsPassword(details={**error.details, **where})
    if isinstance(error, errors.OpenCodeUnreachable):
        return errors.OpenCodeUnreachable(error.message, details={**error.details, **where})
    error.details.update(where)
    return error
