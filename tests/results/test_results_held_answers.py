"""A file on randomised answers whose parts do not go together is refused."""

from dataclasses import replace

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
    first, *others = TABLE.release.channels
    return (replace(first, **changed), *others)


def stored(fit, path):
    """Write and read a result."""
    fit.save(path)
    return dp.load(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"channels": channel(truth=0.0)}, "no device"),
        ({"channels": channel(truth=1.5)}, "no device"),
        ({"channels": channel(law=(0.9, 0.2))}, "no device"),
        ({"channels": channel(how="")}, "no device"),
        ({"weights": None}, "sums of weights"),
        ({"values": -TABLE.release.values}, "sums of weights"),
        ({"shares": (1.0,)}, "one a stratum"),
        ({"incomplete": -1}, "number of respondents"),
        ({"channels": TABLE.release.channels[:1]}, r"shape|one a question"),
        ({"values": np.zeros((1, 6))}, "shape"),
    ],
)
def test_a_table_of_no_answers_is_refused(changes, said, tmp_path):
    path = tmp_path / "fit.nc"
    with pytest.raises(FrameError, match=said):
        stored(replace(TABLE, release=replace(TABLE.release, **changes)), path)


@pytest.mark.parametrize(
    "changes", [{"names": ("Intercept", "a", "b")}, {"matrix": np.eye(3) * 2}, {"response": "g"}]
)
def test_a_fit_of_another_formula_is_refused(changes, tmp_path):
    path = tmp_path / "fit.nc"
    with pytest.raises(FrameError, match="not that of the formula"):
        stored(replace(FIT, call=replace(FIT.call, **changes)), path)
