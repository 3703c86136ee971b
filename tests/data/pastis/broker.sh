#!/bin/sh
# usage: broker.sh DIR
# Installs a real PASTIS broker with its AFL++ driver from PyPI packages alone, unless DIR has it:
# DIR/venv, half a gigabyte.
set -eu
D=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$D"
[ ! -e complete ] || exit 0
# What an earlier call left half done.
rm -rf venv
python3 -m venv venv
# bitstring 5 lacks what a package below needs; setuptools builds ours, and from 82 on lacks
# pkg_resources; with PyYAML the tests read our manifest.
venv/bin/pip install -q --disable-pip-version-check pastis-framework==1.0.13 'bitstring<5' \
  'setuptools>=70.1,<80' PyYAML
touch complete
