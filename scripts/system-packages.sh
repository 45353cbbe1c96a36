#!/bin/sh
# Make sure that programs are there, installing Debian packages where that is allowed.
#
#   scripts/system-packages.sh tmux [chromium ...]   (package and program have the same name)
#
# Installs with apt-get as root or through a sudo that asks nothing; otherwise says what to run.
set -eu

missing=
for program in "$@"; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
missing=${missing# }

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 ||
    fail "Missing on this machine: $missing" "Install it with your package manager, then run this again."

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    fail "Missing on this machine: $missing" "Install it with:  sudo apt-get install $missing"
fi

echo "Installing $missing with apt-get ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # both hold several words on purpose
if ! { $as_root apt-get update -qq &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
    >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    fail "apt-get could not install: $missing"
fi
for program in $missing; do
    command -v "$program" >/dev/null 2>&1 || fail "apt-get installed $program, but it is still not on PATH."
done
