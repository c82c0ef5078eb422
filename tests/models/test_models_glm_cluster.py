"""``dp_glm`` with persons: standard errors clustered by person, what they are and say."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import dpmodels as dp

BOOK = dp.codebook(y=["no", "yes"], c=(0, 12), x=(-1, 1), z=(-1, 1))
HUGE = {"codebook": BOOK, "budget": dp.ZCDP(1e12), "person": "id"}
SLOPES = np.array([0.2, 0.8, -0.6])


def panel(persons, seed=1):
    """A column `z`, and what is not seen, that the rows of a person share."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 13, persons)
    whose = np.repeat(np.arange(persons), count)
    x, z = rng.uniform(-1, 1, len(whose)), rng.uniform(-1, 1, persons)[whose]
    shared = rng.normal(size=persons)[whose]
    b = SLOPES @ np.vstack([np.ones(len(x)), x, z]) + 1.2 * shared + rng.logistic(size=len(x)) > 0
    c = rng.poisson(np.exp(0.3 + 0.4 * x + 0.3 * z + 0.5 * shared - 0.125)).clip(0, 12)
    options = {"b": b.astype(float), "c": c, "x": x, "z": z, "id": whose, "share": 1 / count[whose]}
    return pd.DataFrame({"y": np.where(b, "yes", "no"), **options})


ROWS = panel(900)
COUNTS = {"family": "poisson", "clip": 20}
FAMILIES = {
    "binomial": ("y", "b", sm.families.Binomial(), {}),
    "poisson": ("c", "c", sm.families.Poisson(), COUNTS | {"mechanism": "gradients"}),
    "poisson by scores": ("c", "c", sm.families.Poisson(), COUNTS),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", ["mean", 12])
@pytest.mark.filterwarnings("ignore:cov_type not fully supported")
def test_a_huge_budget_gives_statsmodels_clustered_errors(family, rows):
    response, number, law, words = FAMILIES[family]
    share = ROWS.share if rows == "mean" else None
    design = sm.add_constant(ROWS[["x", "z"]])
    reference = sm.GLM(ROWS[number], design, family=law, freq_weights=share)
    reference = reference.fit(cov_type="cluster", cov_kwds={"groups": ROWS.id.to_numpy()})
    fit = dp.dp_glm(f"{response} ~ x + z", ROWS, rows=rows, **{**HUGE, **words})
    # Up to 2 % of the rows are left out by chance; noise is negligible. In 60 fits coefficients
    # had sd .0015 or less and errors .0012 about a bias of .0017: limits beyond 6 sd, fewer false
    # alarms than 1e-7 in 36 comparisons.
    assert fit.params.to_numpy() == pytest.approx(reference.params.to_numpy(), abs=0.01)
    assert fit.bse_sampling.to_numpy() == pytest.approx(reference.bse.to_numpy(), rel=0.02)
    assert fit.release.curvature.person == "id"


def test_where_noise_hides_squares_rows_of_a_person_are_taken_for_alike():
    """Clustered errors lie between those of rows and those of rows that are all alike."""
    words = {**HUGE, "rows": 6, "budget": None, "delta": 1e-6}
    with dp.simulation(seed=1):
        fit = dp.dp_glm("y ~ x + z", ROWS, eps=8.0, **words)
    with dp.simulation(seed=1):
        exact = dp.dp_glm("y ~ x + z", ROWS, eps=1e4, **words)
    assert fit.sandwich.robust < 0.9
    assert exact.sandwich.robust > 0.99
    assert (fit.bse_sampling > 0.9 * exact.bse_sampling).all()


def test_what_is_read_back_is_the_same_and_says_so(tmp_path):
    with dp.simulation(seed=1):
        fit = dp.dp_glm("y ~ x + z", ROWS, **HUGE)
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "squares of persons' gradients (id)" in text
    assert "as if all rows of a person were equal" in text
