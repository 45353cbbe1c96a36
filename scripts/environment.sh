#!/bin/sh
# Build or refresh .venv, the project's own Python environment.
#
#   scripts/environment.sh runtime   what the program needs
#   scripts/environment.sh dev       that, and what tests and checks need
#
# Needs Python >= 3.11 with pip, nothing else: Debian's python3 has no ensurepip, so the environment
# is made without pip and filled from outside. PYTHON=/path/to/python3 chooses the interpreter.
# Runs in no time when nothing changed: a stamp holds what was installed from which pyproject.toml.
set -eu

extras=${1:?usage: scripts/environment.sh runtime|dev}
cd "$(dirname "$0")/.."
root=$(pwd -P)
venv=$root/.venv
log=$venv/install.log

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# The checkout's place is part of the stamp: an editable installation and its scripts point to it.
stamp() {
    printf '%s %s %s\n' "$1" "$root" "$(cksum <pyproject.toml)"
}

fresh() {
    [ -x "$venv/bin/cafleet" ] && "$venv/bin/python" -c pass 2>/dev/null || return 1
    [ -f "$venv/installed" ] || return 1
    installed=$(cat "$venv/installed")
    [ "$installed" = "$(stamp dev)" ] || [ "$installed" = "$(stamp "$extras")" ]
}

# A version manager's shim may be on PATH and still not run, so every candidate is tried.
new_enough() {
    "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

has_pip() {
    "$1" -m pip --version >/dev/null 2>&1
}

choose_python() {
    found=
    for candidate in ${PYTHON:-python3 python3.15 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3}; do
        if new_enough "$candidate"; then
            found=$candidate
            has_pip "$candidate" && break
        fi
    done
    [ -n "$found" ] || fail "cafleet needs Python 3.11 or newer, and none was found${PYTHON:+ as $PYTHON}." \
        "On Debian or Ubuntu:  apt-get install python3 python3-pip"
    has_pip "$found" || fail "$found has no pip." \
        "On Debian or Ubuntu:  apt-get install python3-pip"
    python=$found
}

# 'pip --python' came with pip 22.3; an older one first puts a current pip into the environment.
install() {
    if "$python" -m pip --python "$venv/bin/python" --version >/dev/null 2>&1; then
        "$python" -m pip --python "$venv/bin/python" --no-input --disable-pip-version-check install --quiet "$@"
        return
    fi
    packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$python" -m pip --no-input install --quiet --target "$packages" --upgrade pip
    "$venv/bin/python" -m pip --no-input --disable-pip-version-check install --quiet "$@"
}

fresh && exit 0
choose_python
echo "Setting up .venv with $("$python" --version 2>&1) ($extras) ..."
made_by="$root $("$python" -c 'import sys; print(sys.base_prefix, sys.version)')"
if [ "$(cat "$venv/made-by" 2>/dev/null)" != "$made_by" ]; then
    rm -rf "$venv"
    "$python" -m venv --without-pip "$venv"
    printf '%s\n' "$made_by" >"$venv/made-by"
fi
rm -f "$venv/installed"

case $extras in
runtime) wanted=. ;;
dev) wanted='.[dev]' ;;
*) fail "unknown environment: $extras" ;;
esac
# Root in a container is no mistake here: the environment is the project's own.
PIP_ROOT_USER_ACTION=ignore
PIP_USER=0
export PIP_ROOT_USER_ACTION PIP_USER
if ! install --editable "$wanted" >"$log" 2>&1; then
    cat "$log" >&2
    fail "Installing into .venv failed (the log is $log). 'make clean' and trying again is safe."
fi
stamp "$extras" >"$venv/installed"
