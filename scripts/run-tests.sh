#!/usr/bin/env bash
# usage: scripts/run-tests.sh GROUP COMMAND...   run the command and keep what is worth knowing
#        scripts/run-tests.sh --begin            forget what was kept
#        scripts/run-tests.sh --summary          the slowest tests, the flaky and the skipped ones
# COMMAND is `cargo nextest run` or `cargo test` with its arguments. A command that fails is followed
# by the summary.
set -uo pipefail
target=${CARGO_TARGET_DIR:-$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")/target}
kept=$target/test-results
junit=$target/nextest/default/junit.xml

# Seconds and name of each test, from nextest's report; a mark for those that passed at a later attempt.
of_nextest() {
  sed -n 's/.*<testcase name="\([^"]*\)" classname="[^":]*:*\([^"]*\)".* time="\([0-9.]*\)".*/\3 \2::\1/p
          s/.*<flakyFailure.*/flaky/p' "$junit" |
    awk '$1 == "flaky" { if (last) print last > flaky; last = ""; next } { print; last = $2 }' \
      flaky="$kept/$1.flaky"
}

# cargo test knows no single tests: seconds of each group.
of_cargo() {
  sed -n 's/.*Running [^(]*(\(.*\))$/\1/p; s/^test result: .*finished in \([0-9.]*\)s$/ \1/p' "$kept/$1.log" |
    awk '/^ / { if (name) print $1, name; name = ""; next } { n = split($0, part, "/"); name = part[n] }'
}

summary() {
  local kind
  echo
  echo 'slowest tests, seconds:'
  sort -rn "$kept"/*.times | head -n 5 | sed 's/^/  /'
  for kind in flaky skipped; do
    cat "$kept"/*."$kind" 2>/dev/null | sort | uniq -c >"$kept/$kind.all"
    if [[ -s $kept/$kind.all ]]; then
      case $kind in
        flaky) echo 'flaky tests, which failed and then passed:' ;;
        skipped) echo "$(awk '{ n += $1 } END { print n }' "$kept/$kind.all") skipped tests or parts of tests:" ;;
      esac
      cat "$kept/$kind.all"
    fi
  done
}

case $1 in
  --begin) rm -rf "$kept" ;;
  --summary) summary ;;
  *)
    group=$1
    shift
    mkdir -p "$kept"
    rm -f "$kept/$group".* "$junit"
    export SKIPPED_TESTS=$kept/$group.skipped
    if [[ " $* " == *' nextest '* ]]; then
      "$@"
      code=$?
      [[ ! -e $junit ]] || of_nextest "$group" >"$kept/$group.times"
    else
      "$@" 2>&1 | tee "$kept/$group.log"
      code=$?
      of_cargo "$group" >"$kept/$group.times"
    fi
    ((code == 0)) || summary
    exit "$code"
    ;;
esac
