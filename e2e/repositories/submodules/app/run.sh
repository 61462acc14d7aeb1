#!/bin/sh
# run.sh prints what the library and the library's own library say.
cd "$(dirname "$0")/.." || exit
. ./current/say.sh
say "$(cat app/name)"
