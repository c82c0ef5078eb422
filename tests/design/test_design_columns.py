"""Columns as numbers: what a codebook makes of values far outside."""

import numpy as np
import pytest

from dpmodels.codebook import Codebook
from dpmodels.design.columns import converted
from dpmodels.variables import Numeric


@pytest.mark.parametrize("distant", [1.7e308, -1.7e308, np.inf, -np.inf])
def test_a_value_far_outside_is_held_before_steps_are_counted_and_tells_nothing(distant):
    """A quotient that overflows would be a warning, so for some an error, of one private row."""
    book = Codebook(y=Numeric(-1, 1, step=1e-3))
    with np.errstate(all="raise"):
        result = converted(book, {"y": np.array([0.0, distant, np.nan])})["y"]
    np.testing.assert_array_equal(result, [0.0, np.copysign(1.0, distant), np.nan])
