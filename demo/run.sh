#!/usr/bin/env bash
# Builds demo.c with domain feedback and fuzzes it until the 2 GB allocation is found.
# usage: demo/run.sh [FOLDER WITH ffuzz AND ITS LINKS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(realpath "${1:-target/release}")
limit=60              # seconds
wanted=2000000000     # bytes
work=demo/build
out=$work/out
fuzzer=

fail() {
  echo "demo: $1" >&2
  exit 1
}

stop() {
  [[ -n $fuzzer ]] || return 0
  kill -INT "$fuzzer" 2>/dev/null || true
  wait "$fuzzer" || true
  fuzzer=
}
trap stop EXIT
trap 'exit 130' INT TERM

# fuzzer_stats FIELD
stat_of() {
  sed -n "s/^$1 *: *//p" "$out/fuzzer_stats"
}

# The largest value that moved an aggregate: only `mem` has values of this size here.
largest() {
  [[ -f $out/fuzzfactory.log ]] || { echo 0; return; }
  sed -n 's/.*new aggregate: \([0-9]*\).*/\1/p' "$out/fuzzfactory.log" | sort -n | tail -n 1
}

run() {
  printf '$ %s\n' "$*"
  env "$@"
}

mkdir -p "$work"
rm -rf "$out"
run WAYPOINTS=cmp,mem "$bin/ffuzz-cc" -O1 demo/demo.c -o "$work/demo"

# Plain lines, and no question about core_pattern: the demo is about allocations, not crashes.
export AFL_NO_UI=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
unset AFL_AUTORESUME AFL_QUIET AFL_FORCE_UI
printf '$ %s\n' "$bin/ffuzz -p -i demo/seeds -o $out $work/demo"
set -m # its own process group: Ctrl-C comes to this script, which stops the fuzzer
"$bin/ffuzz" -p -V $limit -i demo/seeds -o "$out" "$work/demo" &
fuzzer=$!
set +m
began=$SECONDS
found=0
while kill -0 "$fuzzer" 2>/dev/null && ((SECONDS - began <= limit)); do
  found=$(largest)
  ((${found:-0} < wanted)) || break
  sleep 0.2
done
stop
found=$(largest)
((${found:-0} >= wanted)) ||
  fail "no allocation of $wanted bytes within $limit s (largest: ${found:-0}); what was found is in $out"

# Which input it was: waypoints, newest first, end in `,+dsf`.
input=
for file in $(find "$out/queue/" -name 'id:*+dsf*' | sort -r); do
  if "$bin/ffuzz-showdsf" -q -- "$work/demo" <"$file" 2>/dev/null | grep -q " = $found\$"; then
    input=$file
    break
  fi
done
[[ -n $input ]] || fail "no input in $out/queue allocates the $found bytes that the log names"

cat <<END

Found:       an allocation of $found bytes (the line is demo/demo.c:$(grep -n 'return malloc' demo/demo.c | cut -d: -f1))
Input:       $(od -An -tx1 -v <"$input" | tr -d '\n')   $input
Needed:      $(stat_of run_time) s, $(stat_of execs_done) executions; without domains it is out of reach

Try next:
  $bin/ffuzz-showdsf -q -i $out/queue -- $work/demo   # the best value of every key
  $work/demo < '$input'

A program of yours, with a folder of small inputs for it (docs/quickstart.md):
  WAYPOINTS=cmp,mem AFL_USE_ASAN=1 $bin/ffuzz-cc -g YOUR.c -o your     # or CC=$bin/ffuzz-cc ./configure && make
  $bin/ffuzz -p -i SEEDS -o OUT -- ./your                              # ./your @@ if it reads a file
END
