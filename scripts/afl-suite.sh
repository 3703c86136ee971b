#!/usr/bin/env bash
# Runs the tests of AFL++ 4.40c with ffuzz under the names of AFL++'s programs.
#
#   scripts/afl-suite.sh [--short] [FOLDER_OF_FFUZZ] [SCRIPT...]
#
# FOLDER_OF_FFUZZ is target/release unless given; the scripts are those named below. The tests come out of a crate
# that carries them (see benches/peers.sh) and run in target/afl-suite. If AFL++ is built (benches/peers.sh), they
# run with AFL++, too. The table at the end has a row for each check that one of them fails, with the reason if
# it is known (scripts/afl-suite.known); the exit code is 1 if ffuzz fails one without a known reason. The short
# form leaves out AFL++ and the scripts that take longest.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
short=
if [[ ${1:-} == --short ]]; then
  short=yes
  shift
fi
bin=$(cd "${1:-$root/target/release}" && pwd)
shift || true
suite=${CARGO_TARGET_DIR:-$root/target}/afl-suite
peer=${CARGO_TARGET_DIR:-$root/target}/bench-peers/aflplusplus-4.40c
known=$root/scripts/afl-suite.known
scripts=("$@")
((${#scripts[@]})) || scripts=(test-basic.sh test-afl-showmap-streaming.sh test-compilers.sh test-llvm-lto.sh)
[[ -n $short ]] || (($#)) || scripts+=(test-cmplog-bitint.sh test-neverzero.sh test-pcguard-atomic.sh test-llvm.sh
  test-custom-mutators.sh)
limit=180
cut="the script was ended after $limit s"
# Lines that are not the result of a check: what the tools themselves say, and sums.
noise='Captured [0-9]+ tuples|Hash of coverage map|all test cases executed|all tests were successful|failure in tests|found id:|dry run of'

fail() {
  printf 'afl-suite: %s\nafl-suite: %s\n' "$1" "$2" >&2
  exit 2
}

# ours FOLDER: the tests, beside links of ffuzz.
ours() {
  local name
  cp -r "$source"/{test,utils,custom_mutators,include,dictionaries,instrumentation} "$1"
  cp "$source"/test-instr.c "$1"
  for name in $("$bin/ffuzz" --commands); do ln -sf "$bin/ffuzz" "$1/ffuzz-$name"; done
  ln -sf "$bin/ffuzz" "$1/afl-fuzz"
  for name in afl-cc afl-clang-fast afl-clang-lto afl-gcc-fast; do ln -sf ffuzz-cc "$1/$name"; done
  for name in afl-c++ afl-clang-fast++ afl-clang-lto++ afl-g++-fast; do ln -sf ffuzz-c++ "$1/$name"; done
  for name in showmap cmin tmin whatsup plot addseeds; do ln -sf "ffuzz-$name" "$1/afl-$name"; done
  ln -sf ffuzz-cmin "$1/afl-cmin.bash"
  ln -sf ffuzz-cmin "$1/afl-cmin.py"
  # Without these files the scripts skip themselves.
  touch "$1"/{split-switches-pass.so,SanitizerCoverageLTO.so}
}

# theirs FOLDER: AFL++ as it was built, and the tools that the benchmarks do not need.
theirs() {
  cp -r "$peer/." "$1"
  env -i PATH="$PATH" HOME="$HOME" make -C "$1" LLVM_CONFIG=llvm-config-19 NO_NYX=1 NO_PYTHON=1 \
    afl-tmin afl-analyze >"$1.log" 2>&1 || fail "AFL++'s tools do not build" "read $1.log"
  ln -sf afl-cmin.py "$1/afl-cmin"
}

# run FOLDER REPORT: a line for each check, with the script's name.
run() {
  local script line
  : >"$2"
  for script in "${scripts[@]}"; do
    echo "== $script"
    # A check may wait for something that does not come.
    { (cd "$1/test" && env -u CARGO_TARGET_DIR TERM=dumb LLVM_CONFIG=llvm-config-19 \
      timeout "$limit" bash "./$script" </dev/null 2>&1) || (($? != 124)) || echo "[!] $cut"; } |
      sed 's/\x1b\[[0-9;]*m//g; s/^\[\*\] Success: /[+] compiles: /; s/^\[\*\] Failing: /[!] does not compile: /' | tee "$2.$script.log" | grep -aE '^ *\[[-+!]\]' | grep -avE "$noise" |
      while read -r line; do echo "$script: $line"; done | tee -a "$2" || true
  done
}

# count REPORT MARK: lines
count() { grep -acF ": [$2]" "$1" || true; }

# failures REPORT: its failed checks, each once.
failures() { { grep -aF ': [!]' "$1" || true; } | sort -u; }

# reason CHECK: why ffuzz fails it, if that is known.
reason() {
  local pattern text found=
  while IFS='|' read -r pattern text; do
    [[ -z $pattern || $pattern == \#* ]] || [[ $1 != *"$pattern"* ]] || found=${text# }
  done <"$known"
  echo "$found"
}

[[ -x $bin/ffuzz ]] || fail "there is no ffuzz in $bin" 'run make first'
source=$("$root/benches/peers.sh" --source) || fail 'there are no tests of AFL++' 'see above'
rm -rf "$suite"
mkdir -p "$suite"/{ffuzz,afl}
ours "$suite/ffuzz"
run "$suite/ffuzz" "$suite/ffuzz.report"
reports=("$suite/ffuzz.report")
if [[ -z $short && -x $peer/afl-fuzz ]]; then
  echo '== with AFL++'
  theirs "$suite/afl"
  run "$suite/afl" "$suite/afl.report" >"$suite/afl.output"
  reports+=("$suite/afl.report")
fi

echo
unknown=0
printf '%-7s %-7s %s\n' AFL++ ffuzz check
while read -r line; do
  for side in afl ffuzz; do
    state=passes
    if [[ ! -e $suite/$side.report ]]; then state=-
    elif grep -aqxF "$line" "$suite/$side.report"; then state=fails
    elif grep -aqxF "${line%%:*}: [!] $cut" "$suite/$side.report"; then state='?'; fi
    printf '%-7s ' "$state"
  done
  why=
  [[ $state != fails ]] || why=$(reason "$line")
  [[ $state != fails || -n $why ]] || unknown=1
  echo "${line/\[!\] /}${why:+ -- known: $why}"
done < <(for report in "${reports[@]}"; do failures "$report"; done | sort -u)
for report in "${reports[@]}"; do
  name=$(basename "$report" .report)
  echo "$name: passed $(count "$report" +), skipped $(count "$report" -), failed $(count "$report" '!')"
done
exit "$unknown"
