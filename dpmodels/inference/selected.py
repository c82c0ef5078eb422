"""The tail of a chi-square statistic among the releases in which the same would be tested."""

from __future__ import annotations

import math

from scipy.special import chdtrc

from dpmodels.typing import Floats


def selected_tail(
    statistic: float, df: int, larger: float, margins: Floats, slopes: Floats
) -> float:
    """Return how often a chi-square variable exceeds its value, given what was chosen by.

    What was chosen to be tested depends on the signs of `margins`, which are positive; `slopes` are
    their covariance with the length of the whitened excess along its direction. Given that
    direction and what of the margins is uncorrelated with the excess, the squared length is
    `larger` times a chi-square variable within the interval in which no margin changes its sign
    [1]_.

    .. [1] Loftus, J. R. and Taylor, J. E. (2015). "Selective inference in regression models with
       groups of variables." arXiv:1511.01478.
    """
    length = math.sqrt(statistic)
    rising, falling = slopes > 0, slopes < 0
    low = float((length - margins[rising] / slopes[rising]).max(initial=0.0))
    high = float((length - margins[falling] / slopes[falling]).min(initial=math.inf))
    above, here, least = (
        0.0 if end == math.inf else float(chdtrc(df / larger, end**2 / larger))
        for end in (high, length, low)
    )
    return min((here - above) / (least - above), 1.0) if least > above else 1.0
