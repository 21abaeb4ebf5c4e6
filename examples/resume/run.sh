#!/usr/bin/env bash
# Interrupts the example, kills it, and has it go on each time; the model is that of "fermata demo-model".
# run.sh FERMATA RESUME: the two programs.
set -euo pipefail
dir=$(mktemp -d)
"$1" demo-model >"$dir/url" &
server=$!
trap 'kill "$server"; rm -rf "$dir"' EXIT
until [ -s "$dir/url" ]; do sleep 0.05; done
OPENAI_BASE_URL=$(grep -o 'http://[^ ]*' "$dir/url")
export OPENAI_BASE_URL OPENAI_API_KEY=none OPENAI_MODEL=demo

# stop SIGNAL: the program begins to wait, and is sent the signal.
stop() {
  "$2" "$dir/conversations" 'call: wait {"Seconds":1000}' >"$dir/out" 2>&1 &
  local pid=$!
  until grep -q waiting "$dir/out"; do sleep 0.05; done
  kill "-$1" "$pid"
  wait "$pid" 2>/dev/null || true
  head -n 2 "$dir/out" | sed 's/ \[demo\].*//'
  "$2" "$dir/conversations" 'what happened?' | grep -o 'interrupted after\|killed while this ran\|The turn crashed\|aborted' | sort -u
}
echo "== interrupt"
stop INT "$2"
echo "== kill -9"
stop KILL "$2"
