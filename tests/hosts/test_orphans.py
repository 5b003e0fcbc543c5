"""Only what a create that gave up can have made is deleted; everything that could be somebody's stays."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ocman_jupyter.errors import NoSuchSession, OpenCodeUnreachable
from ocman_jupyter.hosts.local.orphans import drop_orphans
from ocman_jupyter.hosts.local.records import SessionNotes, TakenBack
from ocman_jupyter.opencode.permissions import session_rules
from ocman_jupyter.opencode.records import Page, SessionRecord
from ocman_jupyter.store import Store

IDENTITY = "/code/r/.git"


class Scene:
    """One session, a worktrees root, and an OpenCode as far as deleting is concerned."""

    def __init__(self, tmp_path: Path) -> None:
        self.store = Store(tmp_path / "state.sqlite")
        self.root = tmp_path.resolve() / "worktrees"
        self.root.mkdir()
        self.place = self.root / "late"
        self.since = time.time()
        self.notes = SessionNotes(self.store)
        self.session = SessionRecord(
            "ses_1", "late", str(self.place), created=int(self.since * 1000) + 50,
            permission=session_rules(str(self.root)),
        )
        self.messages: list[dict[str, Any]] = []
        self.status = "idle"
        self.failure: Exception | None = None
        self.deleted: list[str] = []
        self.told: list[str] = []

    async def gave_up(self, identity: str = IDENTITY, since: float | None = None) -> None:
        await TakenBack(self.store).add(identity, str(self.place), self.since if since is None else since)

    async def drop(self) -> list[str]:
        """What was deleted; the remembering is of another process."""

        async def delete(session_id: str) -> None:
            if self.failure is not None:
                raise self.failure
            self.deleted.append(session_id)

        async def messages(session_id: str, limit: int) -> Page:
            return Page(self.messages[:limit], None)

        feed = SimpleNamespace(
            instance=SimpleNamespace(identity=IDENTITY, root="/code/r"), worktrees_root=str(self.root),
            records=lambda: [self.session], status=lambda session_id: self.status, deleted=self.told.append,
            client=SimpleNamespace(delete_session=delete, messages=messages),
        )
        parts: Any = SimpleNamespace(taken_back=TakenBack(self.store), notes=self.notes)
        await drop_orphans(parts, feed)  # type: ignore[arg-type]
        return self.deleted


@pytest.fixture
def scene(tmp_path: Path) -> Any:
    made = Scene(tmp_path)
    yield made
    made.store.close()


async def test_the_session_of_a_create_that_gave_up_is_deleted(scene: Scene) -> None:
    await scene.gave_up()
    assert await scene.drop() == ["ses_1"] and scene.told == ["ses_1"]


async def test_the_first_create_that_gave_up_counts(scene: Scene) -> None:
    await scene.gave_up()
    await scene.gave_up(since=scene.since + 1000)
    assert await scene.drop() == ["ses_1"]


def changed(**values: Any) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        scene.session = dataclasses.replace(scene.session, **values)

    return change


SOMEBODYS: dict[str, Callable[[Scene], Any]] = {
    "older": lambda scene: changed(created=int(scene.since * 1000) - 1)(scene),
    "a subagent's": changed(parent_id="ses_0"),
    "not with our rules": changed(permission=[]),
    "in another worktree": lambda scene: changed(directory=str(scene.root / "other"))(scene),
    "told to somebody": lambda scene: scene.notes.add("ses_1", IDENTITY, str(scene.place), None),
    "with a message": lambda scene: scene.messages.append({"info": {}}),
    "at work": lambda scene: setattr(scene, "status", "busy"),
    "in a folder that is there": lambda scene: scene.place.mkdir(),
    "in what became a file": lambda scene: scene.place.touch(),
    "in what became a link to nowhere": lambda scene: scene.place.symlink_to("/nowhere"),
    "outside of our root": lambda scene: setattr(scene, "root", scene.root / "deeper"),
}


@pytest.mark.parametrize("whose", SOMEBODYS)
async def test_what_could_be_somebodys_stays(scene: Scene, whose: str) -> None:
    await scene.gave_up()
    done = SOMEBODYS[whose](scene)
    if done is not None and hasattr(done, "__await__"):
        await done
    assert await scene.drop() == [] and scene.told == []


@pytest.mark.parametrize(
    "row", [None, {"identity": "/code/other/.git"}, {"since": time.time() - 25 * 3600}],
    ids=["none", "of another repository", "of the day before"],
)
async def test_a_worktree_that_we_did_not_take_back(scene: Scene, row: dict[str, Any] | None) -> None:
    if row is not None:
        await scene.gave_up(**row)
    assert await scene.drop() == []


async def test_one_that_is_gone_already_or_cannot_be_deleted_now(scene: Scene) -> None:
    await scene.gave_up()
    scene.failure = OpenCodeUnreachable()
    assert await scene.drop() == [] and scene.told == []
    scene.failure = NoSuchSession()
    assert await scene.drop() == [] and scene.told == ["ses_1"]
