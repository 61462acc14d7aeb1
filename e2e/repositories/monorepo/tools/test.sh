#!/usr/bin/env bash
# test.sh FOLDER [SHARD OF] runs the checks of a folder, or every OFth of them.
set -euo pipefail
shard=${2:-1} of=${3:-1} n=0
cd "$(dirname "$0")/../$1"
for check in check-*.sh; do
	if [ $((n++ % of)) -eq $((shard - 1)) ]; then
		echo "$1/$check"
		bash "$check"
	fi
done
