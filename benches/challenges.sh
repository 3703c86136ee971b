#!/usr/bin/env bash
# Who solves the programs of tests/challenges: ffuzz with its comparison log, ffuzz with the domain cmp instead,
# ffuzz -Q with the stripped programs of gcc, AFL++ 4.40c with cmplog, and libFuzzer with -use_value_profile=1. Prints a table in markdown: the executions until
# the first crash, the median of some seeds of the generator, and `–` where most of them find none in time.
#
#   benches/challenges.sh FFUZZ [NAME…]
#
# All start from 48 letters x, without words. TIME: seconds per campaign, 20. SEEDS: how many, 1. KINDS: some of log,
# cmp, native, afl and lib, all.
# CORE: the core that all run on, the last one. AFL++ is expected where benches/peers.sh leaves it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ffuzz=$(realpath "${1:?usage: benches/challenges.sh FFUZZ [NAME…]}")
shift
afl=${CARGO_TARGET_DIR:-$root/target}/bench-peers/aflplusplus-4.40c
time=${TIME:-20}
seeds=${SEEDS:-1}
read -ra kinds <<<"${KINDS:-log cmp native afl lib}"
core=${CORE:-$(($(nproc) - 1))}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/in"
printf 'x%.0s' {1..48} >"$folder/in/seed"

fail() {
  printf 'challenges: %s\nchallenges: %s\n' "$1" "$2" >&2
  exit 1
}

[[ ${kinds[*]} != *afl* || -x $afl/afl-fuzz ]] || fail "there is no AFL++ in $afl" 'run: benches/peers.sh'
command -v clang++ >/dev/null || fail 'clang is not installed' 'run: make setup-test'

# Options of all compilers.
flags=(-O2 -fsanitize=fuzzer)
export FFUZZ_NO_WORDS=1 XDG_CACHE_HOME=$folder/cache
export AFL_PATH=$afl AFL_QUIET=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 AFL_BENCH_UNTIL_CRASH=1
export AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1

# build KIND SOURCE: leaves the program in $folder/KIND, of afl another one in $folder/cmplog.
build() {
  local kind=$1 source=$2 c=cc afl_c=afl-clang-fast clang=clang gcc=gcc
  [[ $source == *.cc ]] && c=c++ afl_c=afl-clang-fast++ clang=clang++ gcc=g++
  case $kind in
    log) "$ffuzz" $c "${flags[@]}" "$source" -o "$folder/log" ;;
    cmp) WAYPOINTS=cmp "$ffuzz" $c "${flags[@]}" "$source" -o "$folder/cmp" ;;
    native)
      gcc -O2 -c "$root/benches/targets/once.c" -o "$folder/once.o"
      $gcc -O2 -s "$source" "$folder/once.o" -o "$folder/native"
      ;;
    afl)
      "$afl/$afl_c" "${flags[@]}" "$source" -o "$folder/afl"
      AFL_LLVM_CMPLOG=1 "$afl/$afl_c" "${flags[@]}" "$source" -o "$folder/cmplog"
      ;;
    lib) "$clang" "${flags[@]}" "$source" -o "$folder/lib" ;;
  esac
}

# The executions of a campaign in the format of AFL, if it has found a crash.
executions() {
  awk -F: '/^execs_done/ { execs = $2 + 0 } /^saved_crashes/ { crashes = $2 + 0 }
    END { if (crashes) print execs }' "$folder/out/default/fuzzer_stats" 2>/dev/null || true
}

# campaign KIND SEED: prints executions, or nothing.
campaign() {
  local kind=$1 seed=$2 limit=(timeout -k 5 $((time + 10)) taskset -c "$core")
  local common=(-s "$seed" -V "$time" -i "$folder/in" -o "$folder/out")
  rm -rf "$folder/out"
  case $kind in
    log) "${limit[@]}" "$ffuzz" "${common[@]}" -- "$folder/log" ;;
    native) AFL_NO_AUTODICT=1 "${limit[@]}" "$ffuzz" -Q "${common[@]}" -- "$folder/native" ;;
    cmp) "${limit[@]}" "$ffuzz" -p -c - "${common[@]}" -- "$folder/cmp" ;;
    afl) "${limit[@]}" "$afl/afl-fuzz" "${common[@]}" -c "$folder/cmplog" -l 2AT -- "$folder/afl" ;;
    lib)
      mkdir "$folder/out"
      cp "$folder/in/seed" "$folder/out"
      "${limit[@]}" "$folder/lib" -seed="$seed" -use_value_profile=1 -max_total_time="$time" -print_final_stats=1 \
        -artifact_prefix="$folder/" "$folder/out"
      ;;
  esac >"$folder/$kind.log" 2>&1 || true
  if [[ $kind == lib ]]; then
    awk '/^==.*ERROR: libFuzzer: / { crashes = 1 } /^stat::number_of_executed_units/ { execs = $2 }
      END { if (crashes) print execs }' "$folder/lib.log"
  else
    executions
  fi
}

# The median of all campaigns, those without a crash as the longest.
median() {
  local seed
  for ((seed = 1; seed <= seeds; seed++)); do
    local execs
    execs=$(campaign "$1" "$seed")
    echo "${execs:-inf}"
  done | sort -g | awk '{ all[NR] = $1 } END { middle = all[int((NR + 1) / 2)]; print middle == "inf" ? "–" : middle }'
}

names=("$@")
if ((!${#names[@]})); then
  for source in "$root"/tests/challenges/*.c*; do names+=("$(basename "${source%.*}")"); done
fi
declare -A titles=([log]='ffuzz' [cmp]='ffuzz, `cmp` without the log' [native]='ffuzz -Q, program of gcc'
  [afl]='AFL++ 4.40c, cmplog' [lib]='libFuzzer, value profile')
printf '| Program '
for kind in "${kinds[@]}"; do printf '| %s ' "${titles[$kind]}"; done
printf '|\n|---%s|\n' "$(printf '|---%.0s' "${kinds[@]}")"
for name in "${names[@]}"; do
  sources=("$root/tests/challenges/$name".*)
  printf '| %s ' "$name"
  for kind in "${kinds[@]}"; do
    build "$kind" "${sources[0]}" >"$folder/build.log" 2>&1 ||
      fail "$name cannot be built: $(tail -n 1 "$folder/build.log")" 'see CONTRIBUTING.md for the compilers that are needed'
    printf '| %s ' "$(median "$kind")"
  done
  echo '|'
done
