#!/bin/sh
# Prove cafleet with the real coding agents: a fleet of all three against a mock model, on loopback only.
#
#   scripts/test-agents.sh              install what is missing, then run the tests
#   scripts/test-agents.sh screens      take the screens that 'make test' reads anew
#
# Installs the versions of tests/real_agents/programs.txt into REAL_AGENTS_FOLDER (.cache/real-agents unless
# it is set; 1.2 GB). Needs node, npm and unshare. No account, nothing but loopback while the tests run.
set -eu

cd "$(dirname "$0")/.."
root=$(pwd -P)
folder=${REAL_AGENTS_FOLDER:-$root/.cache/real-agents}
pinned=tests/real_agents/programs.txt

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

for program in npm node unshare; do
    command -v "$program" >/dev/null 2>&1 || fail "$program is needed, and not on PATH."
done

if ! cmp -s "$pinned" "$folder/installed"; then
    echo "Installing $(tr '\n' ' ' <"$pinned")into $folder (1.2 GB) ..."
    mkdir -p "$folder"
    # shellcheck disable=SC2046  # one word per line on purpose
    npm install --prefix "$folder" --no-audit --no-fund --loglevel error $(cat "$pinned") ||
        fail "npm could not install the programs."
    cp "$pinned" "$folder/installed"
fi

# A network of its own, in which there is only loopback. Whoever is not root becomes it inside.
if [ "$(id -u)" = 0 ]; then
    apart='unshare --net'
else
    apart='unshare --net --map-root-user'
fi
$apart true 2>/dev/null || fail "This machine does not allow a network namespace ('$apart' fails)."

case ${1:-test} in
test) run='-m pytest -q -n 0 -p no:randomly --timeout 600 tests/real_agents' ;;
screens) run="-m tests.real_agents.record_screens $folder tests/agents/screens" ;;
*) fail "usage: scripts/test-agents.sh [screens]" ;;
esac

REAL_AGENTS_FOLDER=$folder
export REAL_AGENTS_FOLDER
# shellcheck disable=SC2016,SC2086  # expanded by the inner shell; several words on purpose
exec $apart sh -c 'ip link set lo up && exec "$@"' sh .venv/bin/python $run
