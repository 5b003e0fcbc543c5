"""The scripts that set everything up: well-formed, helpful, quick the second time, clear when they cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHELL = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.suffix in ("", ".sh")]
SCRIPTS = [*sorted(SHELL), ROOT / ".ci" / "run"]

# A python of a virtual environment that only writes down what it is asked.
PYTHON = """#!/bin/sh
case "$*" in
  *version_info*|*"pip --version"*) exit 0 ;;
esac
echo "$*" >> "$LOG"
[ -n "$PIP_FAILS" ] && { echo "ERROR: no such thing"; exit 1; }
exit 0
"""


def bash(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in bash."""
    return subprocess.run(
        ["bash", "-c", code],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_every_script_is_well_formed(script: Path) -> None:
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = script.read_text()
    assert script.suffix == ".sh" or "set -euo pipefail" in text
    assert not re.search(r"(curl|wget)\b", text), "nothing from the network runs unseen"


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    done = subprocess.run(["shellcheck", "-x", str(script)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["demo", "test"])
def test_help_installs_nothing(name: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    done = bash(f'bash "{ROOT}/scripts/{name}" --help', OCMAN_VENV=str(venv))
    assert done.returncode == 0
    assert f"scripts/{name}" in done.stdout
    assert not venv.exists()


def test_ci_runs_what_the_readme_tells_people_to_run() -> None:
    assert "bash scripts/test" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a front end, and a virtual environment with a fake python."""
    root = tmp_path / "checkout"
    for path in ("labextension/src/index.ts", "labextension/node_modules/big.js", "jupyter-config/x.json",
                 "pyproject.toml", "ocman_jupyter/labextension/static/style.js"):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "environment.sh", root / "scripts")
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    return root


def install(checkout: Path, **env: str) -> subprocess.CompletedProcess[str]:
    code = f'set -euo pipefail; source "{checkout}/scripts/environment.sh"; install_package lab'
    return bash(code, LOG=str(checkout / "log"), OCMAN_VENV="", **env)


def installs(checkout: Path) -> int:
    log = checkout / "log"
    return log.read_text().count("pip install") if log.exists() else 0


def test_a_second_run_installs_nothing(checkout: Path) -> None:
    assert install(checkout).returncode == 0
    assert installs(checkout) == 1
    (checkout / "labextension" / "node_modules" / "big.js").write_text("does not count")
    assert install(checkout).returncode == 0
    assert installs(checkout) == 1


@pytest.mark.parametrize("path", ["labextension/src/index.ts", "pyproject.toml"])
def test_a_change_installs_again(checkout: Path, path: str) -> None:
    install(checkout)
    (checkout / path).write_text("changed")
    install(checkout)
    assert installs(checkout) == 2


def test_a_bundle_of_other_sources_is_not_reused(checkout: Path) -> None:
    bundle = checkout / "ocman_jupyter" / "labextension" / "static" / "style.js"
    install(checkout)
    assert not bundle.exists(), "who knows what it was built from"
    bundle.parent.mkdir(parents=True)
    bundle.touch()
    (checkout / "pyproject.toml").write_text("changed")
    install(checkout)
    assert bundle.exists(), "built from these very sources"
    (checkout / "labextension" / "src" / "index.ts").write_text("changed")
    install(checkout)
    assert not bundle.exists()


def test_a_failed_install_says_so_and_is_tried_again(checkout: Path) -> None:
    failed = install(checkout, PIP_FAILS="1")
    assert failed.returncode == 1
    assert "ERROR: no such thing" in failed.stderr
    assert install(checkout).returncode == 0
    assert installs(checkout) == 2


def test_without_a_fitting_python_a_sentence_says_so(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    old = tmp_path / "bin" / "python3"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for tool in (
        "bash",
        "cut",
        "getent",
        "id",
        "dirname",
        "basename",
        "find",
        "sort",
        "tr",
        "xargs",
        "cksum",
        "cat",
    ):
        if found := shutil.which(tool):
            (old.parent / tool).symlink_to(found)
    done = install(checkout, PATH=str(old.parent))
    assert done.returncode == 1
    assert "Python 3.10 or newer is needed" in done.stderr


def test_a_missing_home_is_found(checkout: Path) -> None:
    done = bash(f'set -euo pipefail; source "{checkout}/scripts/environment.sh"; echo "$HOME"', HOME="")
    assert done.returncode == 0
    assert done.stdout.strip()


APT = """#!/bin/sh
echo "apt-get $*" >> "$LOG"
case $1 in
  update) : > "$LOG.lists" ;;
  *) [ -e "$LOG.lists" ] ;;
esac
"""


def put(folder: Path, name: str, text: str) -> None:
    """A program in ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def system_package(checkout: Path, tmp_path: Path) -> tuple[int, list[str]]:
    """Exit code of installing ripgrep, and what apt-get was asked."""
    code = f'set -euo pipefail; source "{checkout}/scripts/environment.sh"; system_package ripgrep'
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = bash(code, LOG=str(tmp_path / "apt"), PATH=path)
    log = tmp_path / "apt"
    return done.returncode, log.read_text().splitlines() if log.exists() else []


def test_the_empty_package_lists_of_a_new_machine_are_filled(checkout: Path, tmp_path: Path) -> None:
    put(tmp_path / "bin", "apt-get", APT)
    put(tmp_path / "bin", "id", "#!/bin/sh\necho 0\n")
    code, asked = system_package(checkout, tmp_path)
    assert code == 0
    assert [line.split()[1] for line in asked] == ["install", "update", "install"]
    assert system_package(checkout, tmp_path)[1][3:] == asked[:1], "the second time without an update"


def test_without_root_nothing_is_installed_and_nobody_is_asked(checkout: Path, tmp_path: Path) -> None:
    put(tmp_path / "bin", "apt-get", APT)
    put(tmp_path / "bin", "id", "#!/bin/sh\necho 1000\n")
    put(tmp_path / "bin", "sudo", "#!/bin/sh\nexit 1\n")
    code, asked = system_package(checkout, tmp_path)
    assert code != 0
    assert asked == []
