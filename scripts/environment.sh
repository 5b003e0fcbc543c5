# shellcheck shell=bash
# What the scripts share: a Python, a virtual environment with this package, programs of the system.
# Sourced, not run.  Expects `set -euo pipefail`; sets `root`, `venv` and `python` (the one of the venv).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=${OCMAN_VENV:-$root/.venv}
python=$venv/bin/python

# A service or a container may run us without a home.
if [ -z "${HOME:-}" ]; then
  HOME=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f6) || true
  export HOME=${HOME:-$root/.home}
fi

note() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { note "$*"; exit 1; }

# as_root COMMAND…: run it as root when that needs nobody's password.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@" </dev/null
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo -n "$@" </dev/null
  else
    return 1
  fi
}

# system_package NAME…: install packages with apt-get, dnf, pacman or brew; false when that is not possible.
system_package() {
  note "installing $* with the system's package manager …"
  if command -v apt-get >/dev/null; then
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@")
    # The lists of packages of a new machine are empty.
    as_root "${install[@]}" >/dev/null 2>&1 || { as_root apt-get update && as_root "${install[@]}"; } >/dev/null 2>&1
  elif command -v dnf >/dev/null; then
    as_root dnf install --assumeyes "$@" >/dev/null
  elif command -v pacman >/dev/null; then
    as_root pacman --sync --refresh --noconfirm --needed "$@" >/dev/null
  elif command -v brew >/dev/null; then
    brew install "$@" >/dev/null </dev/null
  else
    return 1
  fi
}

fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

# find_python: the path of a Python that is new enough.
find_python() {
  local name
  for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.10 python; do
    if [ -n "$name" ] && command -v "$name" >/dev/null && fits "$name"; then
      command -v "$name"
      return
    fi
  done
  fail "Python 3.10 or newer is needed and was not found. Install it (e.g. \`apt-get install python3 python3-venv\`)" \
    "or name one: PYTHON=/path/to/python3 $0"
}

# make_venv: the virtual environment, made when it is not there or does not run.
make_venv() {
  if [ -x "$python" ] && fits "$python" && "$python" -m pip --version >/dev/null 2>&1; then
    return
  fi
  local base
  base=$(find_python)
  note "making $venv with $("$base" --version) …"
  "$base" -m venv --clear "$venv" >/dev/null 2>&1 && return
  # Debian keeps the needed part in a package of its own.
  system_package python3-venv || true
  "$base" -m venv --clear "$venv" ||
    fail "$base cannot make a virtual environment. Install its venv module (e.g. \`apt-get install python3-venv\`)."
}

# hash_of PATH…: one number for the content of files and folders in the checkout.
hash_of() {
  (cd "$root" && find "$@" \( -name node_modules -o -name lib -o -name .yarn -o -name '*.tsbuildinfo' \) -prune -o -type f -print | LC_ALL=C sort |
    tr '\n' '\0' | xargs -0 cksum | cksum | cut -d' ' -f1)
}

# install_package EXTRAS: this checkout, editable, with its front end built; nothing when nothing changed.
install_package() {
  make_venv
  local extras=$1 front stamp
  front=$(hash_of labextension)
  stamp="$front $(hash_of pyproject.toml jupyter-config) $root"
  if [ "$(cat "$venv/.installed-$extras" 2>/dev/null)" = "$stamp" ]; then
    return
  fi
  # A build keeps the bundle that it finds: one of another state of the sources has to go.
  if [ "$(cat "$venv/.front-end" 2>/dev/null)" != "$front" ]; then
    rm -rf "$root/ocman_jupyter/labextension"
  fi
  note "installing ocman-jupyter[$extras] into $venv (a few minutes where nothing is cached) …"
  local log=$venv/install.log
  if ! "$python" -m pip install --disable-pip-version-check --editable "${root}[$extras]" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    fail "pip could not install the package; all of its output is in $log"
  fi
  printf '%s' "$front" >"$venv/.front-end"
  printf '%s' "$stamp" >"$venv/.installed-$extras"
}

# Programs of the venv first: jupyter, ocman-jupyter, and node where it came as a Python package.
use_venv() {
  export PATH="$venv/bin:$PATH" VIRTUAL_ENV=$venv
  unset PYTHONHOME PYTHONPATH
}
