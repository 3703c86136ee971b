#!/usr/bin/env bash
# Makes docs/report.png, the picture of the README: the page of a campaign in headless Chromium.
#
#   scripts/report-picture.sh OUT [FFUZZ]
#
# OUT is a campaign's folder, FFUZZ the program (target/release/ffuzz).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
(($# >= 1)) || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v chromium >/dev/null || { echo 'report-picture: chromium is not installed (apt-get install chromium)' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${2:-$root/target/release/ffuzz}" report -o "$work/report.html" "$1"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
  --window-size=1000,1560 --screenshot="$work/report.png" "file://$work/report.html" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
cp "$work/report.png" "$root/docs/report.png"
