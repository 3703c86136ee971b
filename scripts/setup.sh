#!/usr/bin/env bash
# Installs the Debian packages that building ffuzz needs, with --test also those of its tests.
# Does nothing, quickly, when all are there. On another system it prints what to install.
# With --servers: only the two servers that some tests talk to, from PyPI; with --skip it says which
# of them are not there, and installs none.
set -euo pipefail

build=(clang-19 llvm-19-dev lld-19 libclang-rt-19-dev binutils gcc libc6-dev make ca-certificates)
# Other clangs and linkers, AFL++ as the other side of the protocol, a libpython for mutators in
# Python, and what real builds want.
tests=(clang-14 libclang-rt-14-dev llvm-14-dev clang-15 llvm-15-dev
  clang-16 libclang-rt-16-dev llvm-16-dev libc++-19-dev afl++ afl++-doc gdb gnuplot-nox mold dpkg-dev
  cmake ccache musl-tools zlib1g-dev golang-go qemu-user libc6-arm64-cross libpython3-dev python3-venv git openssl curl libmagic1 libxml2-utils)
# Script below tests/data, what it installs, MB to download and MB on disk.
servers=('fuzzmanager/server.sh|a FuzzManager server|20|125'
  'pastis/broker.sh|a PASTIS broker|130|525')

usage() {
  echo 'usage: scripts/setup.sh [--test] [--list] | --servers [--list | --skip]' >&2
  exit 2
}

wanted=("${build[@]}")
list=
skip=
only_servers=
for word in "$@"; do
  case $word in
    --test) wanted+=("${tests[@]}") ;;
    --servers) only_servers=yes ;;
    --list) list=yes ;;
    --skip) skip=yes ;;
    *) usage ;;
  esac
done

# Where a server is, or is to be.
server_folder() {
  local folder=${CARGO_TARGET_DIR:-$root/target}
  echo "$folder/${1%%/*}"
}

# Their tests are skipped if PyPI cannot be reached.
install_servers() {
  local server script what download disk folder
  for server in "${servers[@]}"; do
    IFS='|' read -r script what download disk <<<"$server"
    folder=$(server_folder "$script")
    if [[ -n $list ]]; then
      echo "$what: $download MB to download, $disk MB in $folder"
    elif [[ -e $folder/complete ]]; then
      :
    elif [[ -n $skip ]]; then
      echo "setup: no ${what#a } is installed: its tests are skipped (make setup-servers)"
    else
      echo "setup: installing $what for the tests: $download MB to download, $disk MB on disk"
      sh "$root/tests/data/$script" "$folder" ||
        echo "setup: no ${what#a } (see above): its tests will be skipped" >&2
    fi
  done
}

root=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")
if [[ -n $only_servers ]]; then
  [[ ${#wanted[@]} == "${#build[@]}" ]] || usage
  install_servers
  exit
fi
if [[ -n $list ]]; then
  printf '%s\n' "${wanted[@]}"
  exit
fi

# Before anything is fetched.
command -v cargo >/dev/null || PATH=$PATH:$HOME/.cargo/bin
least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
if ! version=$(rustc --version 2>/dev/null) || ! cargo --version >/dev/null 2>&1; then
  echo "setup: no Rust toolchain in PATH or ~/.cargo/bin: install one as https://rustup.rs says ($least or newer)" >&2
  exit 1
fi
version=${version#rustc }
version=${version%%[ -]*}
if [[ $(printf '%s\n' "$least" "$version" | sort -V | head -n 1) != "$least" ]]; then
  echo "setup: Rust $version is too old: rustup update, or install $least or newer as https://rustup.rs says" >&2
  exit 1
fi
if ((${#wanted[@]} > ${#build[@]})); then
  for part in fmt clippy; do
    cargo $part --version >/dev/null 2>&1 && continue
    echo "setup: this Rust toolchain has no cargo $part: rustup component add rustfmt clippy" >&2
    exit 1
  done
fi

missing=()
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  # dpkg-query fails if it does not know one of the names: that one is missing.
  installed=" $( (dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null || true) |
    sed -n 's/^ii *//p' | tr '\n' ' ') "
  for package in "${wanted[@]}"; do
    [[ $installed == *" $package "* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || exit 0
else
  # Not Debian: what counts is whether the programs are there, under whatever package name.
  for program in clang++-19 clang++; do command -v $program >/dev/null && clang=$program && break; done
  for program in llvm-config-19 llvm-config; do command -v $program >/dev/null && llvm=$program && break; done
  [[ -n ${clang-} && -n ${llvm-} ]] && command -v ar cc make >/dev/null && exit 0
  {
    echo 'setup: this system has no apt-get. Install what these Debian packages hold, then try again:'
    printf '  %s\n' "${wanted[@]}"
  } >&2
  exit 1
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo. As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=120 "$@"
}
echo "setup: ${#missing[@]} Debian packages are missing: ${missing[*]}"
# What apt-get would say before it asks.
sizes() {
  apt install --assume-no --no-install-recommends "${missing[@]}" | sed -n '/^Need to get/p; /^After this/p' || true
}
if ! { apt update -q && sizes && apt install -q -y --no-install-recommends "${missing[@]}"; }; then
  echo "setup: apt-get failed (see above). By hand: apt-get install ${missing[*]}" >&2
  exit 1
fi
