"""Where panels are shown: the output of a cell, live while the kernel runs, readable when the notebook is saved."""

from __future__ import annotations

import sys
import weakref
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def in_notebook() -> bool:
    """This process is a kernel whose page can show widgets."""
    return getattr(_shell(), "kernel", None) is not None


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


class Still:
    """The view that is saved: an output above the live one.  A page hides it where the live one is there.

    Parameters
    ----------
    key:
        Joins it with its live view, which has the class ``ocman-live-<key>``.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._handles: list[Any] = []

    def show(self, html: str, plain: str) -> None:
        """Put it into the output of the running cell."""
        from IPython.display import display

        handle = display(self._data(html, plain), raw=True, display_id=True)
        if handle is not None:
            self._handles = [*self._handles[-3:], handle]

    def update(self, html: str, plain: str) -> None:
        """Replace it wherever it was shown.  Changes the notebook: not for every word that streams."""
        for handle in self._handles:
            handle.update(self._data(html, plain), raw=True)

    def _data(self, html: str, plain: str) -> dict[str, str]:
        hide = (
            f"<style>.jp-OutputArea:has(.ocman-live-{self._key}) "
            f".jp-OutputArea-child:has(.ocman-still-{self._key}){{display:none}}</style>"
        )
        return {"text/html": f'{hide}<div class="ocman-still-{self._key}">{html}</div>', "text/plain": plain}


class Cells:
    """Which panels the cells of the notebook show.  A cell that is run again closes those that it showed before,
    else each run would leave one more that is live and unseen.
    """

    def __init__(self) -> None:
        self._shown: dict[str, list[tuple[str, weakref.ref[Any]]]] = {}

    def show(self, panel: Any) -> None:
        """The running cell shows ``panel``; panels that only earlier runs of it showed are closed."""
        cell, run = _running()
        if not cell:
            return
        before = self._shown.get(cell, [])
        self._shown[cell] = [(when, seen) for when, seen in before if when == run] + [(run, weakref.ref(panel))]
        for when, seen in before:
            old = seen()
            if when != run and old is not None and not self._is_shown(old):
                old.close()

    def _is_shown(self, panel: Any) -> bool:
        return any(seen() is panel for shown in self._shown.values() for _, seen in shown)


CELLS = Cells()


def _running() -> tuple[str, str]:
    """The running cell and its run, as the page names them; empty where it does not."""
    kernel = getattr(_shell(), "kernel", None)
    try:
        parent = kernel.get_parent("shell")
        return str((parent.get("metadata") or {}).get("cellId") or ""), str(parent["header"]["msg_id"])
    except (AttributeError, KeyError, LookupError, TypeError):
        return "", ""
