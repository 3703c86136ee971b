#!/usr/bin/env bash
# usage: scripts/progress.sh WHAT COMMAND...
# Runs the command. Without a terminal, where cargo shows no progress, a line every half minute says
# that it still runs.
set -uo pipefail
what=$1
shift
if [[ ! -t 2 ]]; then
  # A pipe that nobody writes to: a wait without a process that would outlive this one.
  exec 9<> <(:)
  (while ! read -rt 30 -u 9; do echo "$what: $SECONDS s so far" >&2; done) &
  trap "kill $!" EXIT
fi
"$@"
