"""One OpenCode per project, one worktree per idea: the hooks that Jupyter looks for, and the public API."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"


# --- hooks of Jupyter Server and JupyterLab ---------------------------------------------------


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from .server.extension import OcmanExtension

    return [{"module": "ocman_jupyter", "app": OcmanExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "ocman-jupyter"}]


# --- hooks of IPython, and the Python API -----------------------------------------------------

_VERBS = (
    "worktree", "worktrees", "diff", "remove", "ensure", "stop", "sessions", "session", "get_session", "prompt",
    "watch", "abort", "asks", "reply", "doctor", "local",
)  # fmt: skip
_PANELS = {"SessionPanel": "panels", "Worktrees": "overview"}


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext ocman_jupyter``."""
    from .notebook.magics import register

    register(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """``%unload_ext ocman_jupyter``."""
    from .notebook.magics import unregister

    unregister(ipython)


def __getattr__(name: str) -> Any:
    # Loaded at use: an import of this package, which every Jupyter server does, stays light.
    if name in _VERBS or (name[:1] == "a" and name[1:] in _VERBS):
        from .notebook import api

        return getattr(api, name)
    if name in _PANELS:
        return getattr(importlib.import_module(f"{__name__}.notebook.{_PANELS[name]}"), name)
    # Not `from . import errors`: that asks this very function first.
    errors = importlib.import_module(f"{__name__}.errors")

    if name == "OcmanError" or name in {cls.__name__ for cls in errors.BY_CODE.values()}:
        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from . import errors

    names = {cls.__name__ for cls in errors.BY_CODE.values()}
    return sorted({*globals(), *_VERBS, *("a" + verb for verb in _VERBS), *_PANELS, "OcmanError", *names})
