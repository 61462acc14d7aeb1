#!/bin/sh
# A text that is turned twice is itself again.
test "$(echo 'To be, or not' | ./rot | ./rot)" = 'To be, or not' || exit 1
test "$(echo 'To be' | ./rot)" = 'Gb or'
