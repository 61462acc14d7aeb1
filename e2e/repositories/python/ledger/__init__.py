"""Sums of what was given and taken."""

from decimal import Decimal


def balance(lines):
    """Return the balance of lines such as "12.50 rent"; an empty line counts as nothing."""
    total = Decimal(0)
    for line in lines:
        if line.strip():
            total += Decimal(line.split()[0])
    return total
