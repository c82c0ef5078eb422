"""A file on randomised answers whose parts do not go together is refused."""

from dataclasses import replace

import forged
import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError

BOOK = dp.codebook(g=["p", "q", "r"], w=(0, 2))
ROWS = {"h": [0, 1] * 30, "g": ["p", "q", "r"] * 20, "w": [1.0, 2.0] * 30}
DEVICE = {"h": dp.randomized_response([0, 1], lie="1/5")}
WORDS = {"codebook": BOOK, "device": DEVICE, "weights": "w"}
TABLE = dp.dp_survey("~ h + g", ROWS, strata={"g": {"p": 1, "q": 1, "r": 2}}, **WORDS)
FIT = dp.dp_survey("h ~ g", ROWS, **WORDS)


def channel(**changed):
    first, *alternatives = TABLE.release.channels
    return (replace(first, **changed), *alternatives)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channels": channel(truth=0.0)}, "not that of a device"),
        ({"channels": channel(truth=1.5)}, "not that of a device"),
        ({"channels": channel(law=(0.9, 0.2))}, "not that of a device"),
        ({"channels": channel(how="")}, "not that of a device"),
        ({"weights": None}, "sums of weights"),
        ({"values": -TABLE.release.values}, "sums of weights"),
        ({"shares": (1.0,)}, "one a stratum"),
        ({"incomplete": -1}, "number of respondents"),
        ({"channels": TABLE.release.channels[:1]}, r"shape|one a question"),
        ({"values": np.zeros((1, 6))}, "shape"),
    ],
)
def test_a_table_of_no_answers_is_refused(changes, message):
    with pytest.raises(FrameError, match=message):
        forged.with_release(TABLE, **changes)


@pytest.mark.guarding
@pytest.mark.parametrize("changes", [{"formula": "h ~ g + w"}, {"formula": "h ~ 0 + w"}])
def test_a_fit_of_another_formula_is_refused(changes):
    with pytest.raises(FrameError, match="array 'coefficients': expected the shape"):
        forged.with_request(FIT, **changes, options={"weights": None, "strata": None})
