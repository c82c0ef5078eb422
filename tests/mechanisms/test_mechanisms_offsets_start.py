"""Where a search for a logistic regression with an offset starts."""

import numpy as np
import pytest
from scipy.special import logit

import dpmodels as dp
from dpmodels.mechanisms.add_noise import GAUSSIAN
from dpmodels.mechanisms.protocol import RegressionFacts, RegressionPlan, passes
from dpmodels.mechanisms.regression.row_location import SHARES, locate_rows
from dpmodels.models.linear import linear
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.request import Request
from dpmodels.statistics.losses import Logistic

BOOK = dp.codebook(y=["no", "yes"], x=(0, 10), z=(-1, 3), t=(0.5, 20))
QUIET = dict.fromkeys([*SHARES, "sd"], 1e-3)


@pytest.mark.parametrize("terms", ["x", "x + z", "x + z + offset(log(t))", "x + offset(log(t))"])
def test_the_constant_is_the_log_odds_less_the_mean_offset(terms):
    rng = np.random.default_rng(2)
    data = {
        "x": rng.uniform(0, 4, 2_000),
        "z": rng.uniform(1, 3, 2_000),
        "t": rng.uniform(0.5, 20, 2_000),
        "y": np.where(rng.random(2_000) < 0.3, "yes", "no"),
    }
    words = {"scale": "range", "row_norm": None, "family": "binomial"}
    request = Request("glm", f"y ~ {terms}", BOOK, ZCDP(1.0), adjacency("replace"), words)
    model = linear(request)
    facts = RegressionFacts(model.predictors, Logistic(), adjacency("replace"))
    rows = passes(model.design.bind(data), facts)
    plan = RegressionPlan(ZCDP(1.0), (), facts, QUIET)
    start = locate_rows(rows, plan, seeded(1), GAUSSIAN).start
    offset = np.log(data["t"]).mean() if "offset" in terms else 0.0
    constant = logit((data["y"] == "yes").mean()) - offset
    # The mean of an offset is that within three standard deviations.
    near = 0.05 if "offset" in terms else 1e-3
    assert start[0] * model.predictors.constant == pytest.approx(constant, abs=near)
    assert (start[1:] == 0).all()
