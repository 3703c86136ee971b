#!/bin/sh
# usage: split-debug.sh PROGRAM
# Moves the debug information of a release build into PROGRAM.debug beside it, where backtraces and
# debuggers look for it. The symbol table stays: a backtrace names functions without that file.
set -eu
program=$1
# Bytes. It had 59 MB with debug information inside; whoever adds a large part raises this on purpose.
most=40000000

if readelf -SW "$program" | grep -q '\.debug_info'; then
  objcopy --only-keep-debug "$program" "$program.debug"
  chmod -x "$program.debug"
  # A new file: cargo's own copy of the build, which this is a link to, keeps all.
  objcopy --strip-debug --add-gnu-debuglink="$program.debug" "$program" "$program.stripped"
  mv "$program.stripped" "$program"
fi
size=$(wc -c < "$program")
if [ "$size" -gt "$most" ]; then
  echo "$program has $size bytes, more than $most" >&2
  echo "hint: find what was added (nm --size-sort), or raise the number in scripts/split-debug.sh" >&2
  exit 1
fi
