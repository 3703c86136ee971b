#!/usr/bin/env bash
# Runs the tests of AFL++ 4.40c with ffuzz under the names of AFL++'s programs.
#
#   scripts/afl-suite.sh [FOLDER_OF_FFUZZ] [SCRIPT...]
#
# FOLDER_OF_FFUZZ is target/release unless given; the scripts are those named below. The tests come out of a crate
# that carries them (see benches/peers.sh) and run in target/afl-suite. At the end stands a line for each check
# that AFL++ passes and ffuzz does not, with the reason if it is known (scripts/afl-suite.known); the exit code
# is 1 if the reason of one is not known.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$(cd "${1:-$root/target/release}" && pwd)
shift || true
suite=${CARGO_TARGET_DIR:-$root/target}/afl-suite
known=$root/scripts/afl-suite.known
scripts=("$@")
((${#scripts[@]})) || scripts=(test-basic.sh test-afl-showmap-streaming.sh test-compilers.sh test-cmplog-bitint.sh
  test-neverzero.sh test-pcguard-atomic.sh test-llvm.sh test-llvm-lto.sh test-custom-mutators.sh)

fail() {
  printf 'afl-suite: %s\nafl-suite: %s\n' "$1" "$2" >&2
  exit 2
}

[[ -x $bin/ffuzz ]] || fail "there is no ffuzz in $bin" 'run make first'
source=$("$root/benches/peers.sh" --source) || fail 'there are no tests of AFL++' 'see above'

rm -rf "$suite"
mkdir -p "$suite"
cp -r "$source"/{test,utils,custom_mutators,include,dictionaries,instrumentation} "$suite"
cp "$source"/test-instr.c "$suite"
for name in $("$bin/ffuzz" --commands); do ln -sf "$bin/ffuzz" "$suite/ffuzz-$name"; done
ln -sf "$bin/ffuzz" "$suite/afl-fuzz"
for name in afl-cc afl-clang-fast afl-clang-lto afl-gcc-fast; do ln -sf ffuzz-cc "$suite/$name"; done
for name in afl-c++ afl-clang-fast++ afl-clang-lto++ afl-g++-fast; do ln -sf ffuzz-c++ "$suite/$name"; done
for name in showmap cmin tmin whatsup plot addseeds; do ln -sf "ffuzz-$name" "$suite/afl-$name"; done
ln -sf ffuzz-cmin "$suite/afl-cmin.bash"
ln -sf ffuzz-cmin "$suite/afl-cmin.py"
# Without these files the scripts skip themselves.
touch "$suite"/{split-switches-pass.so,SanitizerCoverageLTO.so}

report=$suite/report
: >"$report"
for script in "${scripts[@]}"; do
  echo "== $script"
  # A check may wait for something that does not come.
  (cd "$suite/test" && env -u CARGO_TARGET_DIR TERM=dumb LLVM_CONFIG=llvm-config-19 timeout 600 bash "./$script" </dev/null 2>&1 || true) |
    sed 's/\x1b\[[0-9;]*m//g' | tee "$suite/$script.log" | grep -aE '^ *\[[-+!]\]' |
    while read -r line; do echo "$script: $line"; done | tee -a "$report" || true
done

echo
echo "passed: $(grep -acF ': [+]' "$report" || true), skipped: $(grep -acF ': [-]' "$report" || true), failed: $(grep -acF ': [!]' "$report" || true)"
unknown=0
while read -r line; do
  reason=
  while IFS='|' read -r pattern text; do
    [[ -z $pattern || $pattern == \#* ]] || [[ $line != *"$pattern"* ]] || reason=$text
  done <"$known"
  echo "$line${reason:+ -- known:$reason}"
  [[ -n $reason ]] || unknown=1
done < <(grep -aF ': [!]' "$report" || true)
exit "$unknown"
