#!/bin/sh
# release.sh says for which system it was made, and which version it is.
echo "@NAME@ @VERSION@ for @SYSTEM@"
