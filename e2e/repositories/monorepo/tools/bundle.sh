#!/usr/bin/env bash
# bundle.sh FOLDER VERSION makes FOLDER/bundle.tar, the same each time.
set -euo pipefail
cd "$(dirname "$0")/../$1"
echo "$2" > VERSION
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --exclude=bundle.tar --file=bundle.tar .
