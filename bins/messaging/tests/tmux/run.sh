#!/usr/bin/env bash
# `messaging ui` in a real terminal (tmux, 80 columns, 24 lines) against a real relay and two daemons.
# Usage: run.sh <messaging>. UPDATE_GOLDEN=1 writes the screens beside this script anew.
set -euo pipefail
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
world=$(mktemp -d)
tmux_socket="messaging-ui-$$"
mux() { tmux -L "$tmux_socket" -f /dev/null "$@"; }
at() { local home=$1; shift; "$program" --home "$world/$home" "$@"; }
clean_up() {
    mux kill-server 2>/dev/null || true
    for home in alice bob; do at "$home" daemon stop >/dev/null 2>&1 || true; done
    [ -z "${relay:-}" ] || kill "$relay" 2>/dev/null || true
    rm -rf "$world"
}
trap clean_up EXIT
fail() { echo "ui: $1" >&2; screen >&2; exit 1; }
screen() { mux capture-pane -p -t ui; }

# Waits until the screen holds a text.
until_shown() {
    for _ in $(seq 600); do
        if screen | grep -qF -- "$1"; then return; fi
        sleep 0.1
    done
    fail "'$1' did not show"
}

# Waits until the screen no longer holds a text.
until_gone() {
    for _ in $(seq 600); do
        if ! screen | grep -qF -- "$1"; then return; fi
        sleep 0.1
    done
    fail "'$1' did not go"
}

# Compares the screen with a kept one; what changes from run to run is replaced.
check() {
    local shown
    # The last look may have been in the middle of a drawing.
    for _ in $(seq 100); do
        shown=$(screen | sed -E 's/as of [0-9:]{8}/as of 00:00:00/; s/\b[0-9]{2}:[0-9]{2}\b ([ ✓·])/00:00 \1/; s/ +(now|[0-9]+ s|[0-9]+ min) │/ AGE │/; s/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z/2026-01-01T00:00:00Z/')
        if [ -n "${UPDATE_GOLDEN:-}" ]; then sleep 1; screen >/dev/null; printf '%s\n' "$shown" >"$here/$1.txt"; return; fi
        if [ "$shown" = "$(cat "$here/$1.txt")" ]; then echo "ui: $1 as it was"; return; fi
        sleep 0.1
    done
    diff "$here/$1.txt" <(printf '%s\n' "$shown") >&2 || true
    fail "the screen $1 differs"
}

"$program" relay --listen 127.0.0.1:0 --db "$world/relay.db" >"$world/relay.out" 2>/dev/null &
relay=$!
for _ in $(seq 300); do grep -q ready "$world/relay.out" && break; sleep 0.1; done
port=$(awk '/ready/ {print $3}' "$world/relay.out")
at alice team create --relay "ws://127.0.0.1:$port" --name Blue --person alice --label laptop >/dev/null 2>&1
ticket=$(at alice --json team invite bob | python3 -c 'import json,sys; print(json.load(sys.stdin)["ticket"])')
at bob team join "$ticket" --label desk >/dev/null 2>&1
at bob send alice "Lunch at noon?" >/dev/null

mux new-session -d -s ui -x 80 -y 24 "LANG=C.UTF-8 '$program' --home '$world/alice' ui; echo left with \$?; exec cat"
until_shown "Lunch at noon?"
until_shown "Notices (1)"
check chats
mux send-keys -t ui 5
until_shown "in bob"
check notices
mux send-keys -t ui 1
until_shown "bob: Lunch at noon?"
mux send-keys -t ui w "Yes, the usual place" Enter
until_shown "✓ alice: Yes, the usual place"
mux send-keys -t ui Enter
until_gone "Chats (1)"
check answered
mux send-keys -t ui '?'
until_shown "PageUp, PageDown"
check help
mux send-keys -t ui x 6
until_shown "bob@desk"
check team
# A request comes in while the view is open, and is answered in it.
at bob inbox >/dev/null
at alice inbox >/dev/null
for _ in $(seq 300); do at bob contacts --json | grep -q 'alice/cli@laptop' && break; sleep 0.1; done
at bob send alice/cli@laptop "Is the build green?" >/dev/null
until_shown "Requests (1)"
until_shown "Notices (2)"
mux send-keys -t ui 3
until_shown "Is the build green?"
check requests
mux send-keys -t ui o
until_shown "y yes"
mux send-keys -t ui y
until_shown "Nothing waits for you"
# A smaller terminal, and back.
mux resize-window -t ui -x 50 -y 10
until_shown "needs 80 columns"
mux resize-window -t ui -x 80 -y 24
until_shown "Nothing waits for you"
mux send-keys -t ui q
until_shown "left with 0"
echo "ui: every screen as it was, and the terminal given back"
