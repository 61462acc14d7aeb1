"""Print the balance of what comes on standard input."""

import sys

from ledger import balance


def main():
    """Print one balance."""
    print(balance(sys.stdin))


if __name__ == "__main__":
    main()
