"""A fake host under the API of this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ocman_jupyter.notebook import api
from tests.notebook.fake import FakeHost, install


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    """What the API of this process works on."""
    monkeypatch.setattr(api, "in_process", api.in_process)  # so that it is put back
    yield install()
    api.DESK.use(None)


@pytest.fixture
def shell(fake: FakeHost) -> Iterator[Any]:
    """A real IPython shell with the extension loaded."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_line_magic("load_ext", "ocman_jupyter")
    yield shell
    shell.run_line_magic("unload_ext", "ocman_jupyter")
    shell.reset()
    InteractiveShell.clear_instance()
