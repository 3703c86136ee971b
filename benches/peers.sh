#!/usr/bin/env bash
# Obtains and builds AFL++ 4.40c, which `cargo bench -- speed` measures ffuzz against.
#
#   benches/peers.sh [--source]
#
# With --source only the source is fetched, and its folder is printed.
# The source comes out of a crate that carries it, fetched by cargo; the result is left in
# target/bench-peers/aflplusplus-4.40c. Nothing else is changed but cargo's own cache.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
peers=${CARGO_TARGET_DIR:-$root/target}/bench-peers
tree=$peers/aflplusplus-4.40c
crate=cargo-afl-common
version=0.18.2
# What the benchmark asks for, and builds with.
results=(afl-fuzz afl-clang-fast SanitizerCoveragePCGUARD.so cmplog-instructions-pass.so
  cmplog-routines-pass.so cmplog-switches-pass.so libAFLDriver.a)

fail() {
  printf 'peers: %s\npeers: %s\n' "$1" "$2" >&2
  exit 1
}

# The first of its results that is not there.
missing() {
  for file in "${results[@]}"; do
    [[ -e $tree/$file ]] || { echo "$file"; return; }
  done
}

# Prints the folder of the crate's source.
fetch() {
  local project=$peers/fetch
  mkdir -p "$project/src"
  : >"$project/src/lib.rs"
  # A workspace of its own, because this project is around it.
  printf '%s\n' '[workspace]' '[package]' 'name = "peers"' 'edition = "2021"' \
    '[dependencies]' "$crate = \"=$version\"" >"$project/Cargo.toml"
  (cd "$project" && cargo metadata --quiet --format-version 1) |
    grep -o "\"manifest_path\":\"[^\"]*/$crate-$version/Cargo.toml\"" |
    cut -d '"' -f 4 | xargs -r dirname
}

# Without the user's environment: much of it changes what is built. Python is left out because nothing
# measured here uses it.
build() {
  local make=(env -i PATH="$PATH" HOME="$HOME" make LLVM_CONFIG=llvm-config-19 NO_NYX=1 NO_PYTHON=1)
  "${make[@]}" -C "$tree" -j"$(nproc)" afl-fuzz afl-showmap llvm
  ln -sf afl-cc "$tree/afl-clang-fast"
  "${make[@]}" -C "$tree/utils/aflpp_driver"
}

if [[ ${1:-} == --source ]]; then
  source=$(fetch) || fail "cargo cannot fetch $crate $version (see above)" 'try again when the registry can be reached'
  echo "$source/AFLplusplus"
  exit
fi
for program in cargo make gcc clang-19 llvm-config-19; do
  command -v "$program" >/dev/null || fail "$program is not installed" 'run: make setup-test'
done
if [[ -n $(missing) ]]; then
  source=$(fetch) || fail "cargo cannot fetch $crate $version (see above)" 'try again when the registry can be reached'
  rm -rf "$tree"
  cp -r "$source/AFLplusplus" "$tree"
  build >"$peers/build.log" 2>&1 || fail 'AFL++ does not build' "read $peers/build.log"
  file=$(missing)
  [[ -z $file ]] || fail "AFL++'s build has left no $file" "read $peers/build.log"
fi
echo "peers: AFL++ 4.40c is in $tree"
