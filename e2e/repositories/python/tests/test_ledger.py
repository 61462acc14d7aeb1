"""Tests of the balance."""

import unittest
from decimal import Decimal

from ledger import balance


class BalanceTest(unittest.TestCase):
    """What a balance is."""

    def test_cents_are_exact(self):
        """Ten cents and twenty are thirty."""
        self.assertEqual(balance(["0.10 a", "0.20 b"]), Decimal("0.30"))

    def test_nothing_is_nothing(self):
        """Empty lines count as nothing."""
        self.assertEqual(balance(["", "\n"]), 0)


if __name__ == "__main__":
    unittest.main()
