"""What the front end adds to the start of a page of JupyterLab."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .browser import Lab, browser
from .measure import Row, at_most, interleaved, median
from .scene import BUNDLE, Scene

if TYPE_CHECKING:
    from playwright.sync_api import Response

MAIN_THREAD_LIMIT = 100.0
SIZE_LIMIT = 250.0
USABLE_LIMIT = 1_000.0

SIDES = {
    "files, without": ("files", False),
    "files, with": ("files", True),
    "nothing, without": ("nothing", False),
    "panel, with": ("panel", True),
}
"""What stands in the left side bar, and whether the extension is there."""


DOORS = (
    ("nothing", "filebrowser", '"left":{"collapsed":true'),
    ("panel", "ocman-panel", '"current":"ocman-panel"'),
)
"""Layouts that are not there by themselves, what is clicked for them, and what the server then keeps."""


def page_start(scene: Scene, repeat: int) -> list[Row]:
    """Pages with and without the extension, each in a new browser profile."""
    root = scene.repository("tiny")
    server = scene.server(lab=True)
    scene.instance(server, root)
    later: list[float] = []
    script: dict[str, list[float]] = defaultdict(list)
    loaded: set[str] = set()

    with browser() as chromium:

        def start(side: str, number: int) -> float:
            layout, is_there = SIDES[side]
            scene.show_front_end(is_there)
            with Lab(chromium, server, f"lab/workspaces/{layout}") as lab:
                if layout == "panel":
                    later.append(max(0.0, lab.wait("panel") - lab.wait("lab")))
                    loaded.update(lab.loaded)
                spent = lab.settled()
                script[side].append(spent["ScriptDuration"] * 1000)
                return spent["TaskDuration"] * 1000

        for layout, door, kept in DOORS:
            with (
                Lab(chromium, server, f"lab/workspaces/{layout}") as lab,
                lab.page.expect_response(partial(_saves, kept)),
            ):
                lab.page.locator(f".jp-SideBar [data-id='{door}']").click()
        scene.say(f"{repeat} pages of each kind …")
        figures = interleaved(repeat, {side: partial(start, side) for side in SIDES})
    took = {side: median(values) for side, values in figures.items()}
    files = [path for path in BUNDLE.rglob("*") if path.suffix in (".js", ".css")]
    at_start = [path for path in files if path.relative_to(BUNDLE).as_posix() in loaded]
    case, what = "page start", "main thread of a page, nothing cached"

    def adds(when: str, ours: str, theirs: str) -> Row:
        added = took[ours] - took[theirs]
        return at_most(case, f"{what}: the extension adds, {when}", added, "ms", MAIN_THREAD_LIMIT, repeat)

    plain = "JupyterLab without the extension"
    return [
        adds("its panel closed", "files, with", "files, without"),
        adds("its panel open", "panel, with", "nothing, without"),
        Row(case, f"{what}, panel open", took["panel, with"], "ms", plain, took["nothing, without"], runs=repeat),
        Row(
            case,
            "of that, scripts",
            median(script["panel, with"]),
            "ms",
            plain,
            median(script["nothing, without"]),
            runs=repeat,
        ),
        at_most(case, "the panel is usable later than JupyterLab", median(later), "ms", USABLE_LIMIT, repeat),
        at_most(case, "what is loaded at the start, gzip -9", _compressed(at_start), "kB", SIZE_LIMIT),
        at_most(case, "all scripts and styles of the extension, gzip -9", _compressed(files), "kB", SIZE_LIMIT),
    ]


def _saves(kept: str, answer: Response) -> bool:
    return answer.request.method == "PUT" and kept in (answer.request.post_data or "")


def _compressed(files: Iterable[Path]) -> float:
    """Kilobytes."""
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in files) / 1000
