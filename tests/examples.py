"""How many examples a property is tried on: fewer in the ordinary run than in the product's."""

from hypothesis import settings

# The number of examples that the product's profile has, in tests/conftest.py.
FULL = 100


def examples(number):
    """Return a number of examples, or its part in a profile that has fewer than the product's."""
    return max(10, number * min(settings.default.max_examples, FULL) // FULL)
