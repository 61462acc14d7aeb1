test ! -e VERSION
