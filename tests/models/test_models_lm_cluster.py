"""``vcov="cluster"``: what it is without noise, by default, costs, says, refuses and covers."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.privacy import Adjacency
from tests.mines import Mine

BOOK = dp.codebook(y=(-9, 9), x=(-3, 3), z=(-2, 2), w=(0, 2))
APPROX = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}
HUGE = {"codebook": BOOK, "budget": dp.ZCDP(1e16), "mechanism": "moments"}
SLOPES = np.array([1.0, 0.5, -0.3])


def panel(persons, seed=1, alike=0.6, heavy=False):
    """Errors, and a column `z`, that the rows of a person share."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 13, persons)
    whose = np.repeat(np.arange(persons), count)
    z = rng.uniform(-2, 2, persons)[whose]
    x = rng.normal(size=len(whose)).clip(-3, 3)
    effects = rng.standard_t(3, persons) / np.sqrt(3) if heavy else rng.normal(size=persons)
    error = np.sqrt(alike) * effects[whose] + np.sqrt(1 - alike) * rng.normal(size=len(whose))
    y = (SLOPES @ np.vstack([np.ones(len(x)), x, z]) + error).clip(-9, 9)
    w, share = rng.uniform(0, 2, len(x)), 1 / count[whose]
    return pd.DataFrame({"y": y, "x": x, "z": z, "w": w, "id": whose, "share": share})


ROWS = panel(900)


@pytest.mark.parametrize(
    ("formula", "rows"), [("y ~ x + z", "mean"), ("y ~ x + z - 1", 12), ("y ~ 1", "mean")]
)
def test_a_huge_budget_gives_statsmodels_clustered_errors(formula, rows):
    kwds = {"cov_type": "cluster", "cov_kwds": {"groups": ROWS.id}}
    share = ROWS.share if rows == "mean" else 1.0 + 0 * ROWS.share
    reference = smf.wls(formula, ROWS, weights=share).fit(**kwds)
    fit = dp.dp_lm(formula, ROWS, person="id", rows=rows, **HUGE)
    assert fit.params.to_numpy() == pytest.approx(reference.params.to_numpy(), abs=2e-3)
    assert fit.bse.to_numpy() == pytest.approx(reference.bse.to_numpy(), rel=1e-2)
    conditions = " , ".join(f"{name} = 0" for name in reference.params.index)
    wald = float(reference.wald_test(conditions, scalar=True, use_f=False).statistic)
    assert fit.wald_test(conditions)["statistic"] == pytest.approx(wald, rel=2e-2)
    if "z" in formula:
        plain = smf.wls(formula, ROWS, weights=share).fit(cov_type="HC1")
        assert fit.bse["z"] > 1.5 * plain.bse["z"]


def test_weights_go_along():
    wls = smf.wls("y ~ x + z", ROWS, weights=ROWS.w)
    wls = wls.fit(cov_type="cluster", cov_kwds={"groups": ROWS.id})
    words = {**HUGE, "weights": "w", "adjacency": "add-remove"}
    fit = dp.dp_lm("y ~ x + z", ROWS, person="id", rows=12, **words)
    assert fit.bse.to_numpy() == pytest.approx(wls.bse.to_numpy(), rel=1e-2)


def test_predictions_have_clustered_errors_and_intervals_of_rows():
    wls = smf.wls("y ~ x + z", ROWS, weights=ROWS.share)
    wls = wls.fit(cov_type="cluster", cov_kwds={"groups": ROWS.id})
    new = pd.DataFrame({"x": [0.0, 2.0], "z": [1.0, -2.0]})
    table = dp.dp_lm("y ~ x + z", ROWS, person="id", **HUGE).get_prediction(new)
    se = wls.get_prediction(new).summary_frame()["mean_se"]
    assert table["mean_se"].to_numpy() == pytest.approx(se.to_numpy(), rel=1e-2)
    length = (table["obs_ci_upper"] - table["obs_ci_lower"]) / 2 / 1.96
    assert length.to_numpy() == pytest.approx(1.0, abs=0.1)


def test_it_is_the_default_where_rows_have_persons_and_can_be_read_again():
    def bought(data=ROWS, **words):
        meat = dp.dp_lm("y ~ x", data, **{**APPROX, **words}).release.meat
        return None if meat is None else meat.person

    assert bought(person="id") == "id"
    assert bought(person="id", rows=3, delta=0.0) == "id"
    assert bought(person="id", vcov="iid") is None
    assert bought(rows=3) is None
    assert bought(data=iter([ROWS]), person="id", rows=3) is None
    halves = {"A": ROWS[ROWS.id < 500], "B": ROWS[ROWS.id >= 500]}
    for protocol, person in (("pooled", "id"), ("full", None)):
        words = {"sites": halves, "protocol": protocol, "person": "id", "rows": 3}
        assert bought(data=None, **words) == person
    fit = dp.dp_lm("y ~ x", ROWS, person="id", vcov="HC", **APPROX)
    assert fit.release.meat is not None
    assert fit.release.meat.person is None


def test_pooled_sites_add_the_persons_of_each():
    words = {**HUGE, "person": "id", "rows": 12}
    is_in_half = ROWS.id < 500
    halves = {"A": ROWS[is_in_half], "B": ROWS[~is_in_half]}
    fit = dp.dp_lm("y ~ x + z", ROWS, **words)
    lm_fit = dp.dp_lm("y ~ x + z", sites=halves, protocol="pooled", **words)
    assert lm_fit.bse.to_numpy() == pytest.approx(fit.bse.to_numpy(), rel=1e-2)


@pytest.mark.parametrize("rows", ["mean", 4])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_what_it_costs_a_person_is_what_was_asked(rows, delta):
    ledger = dp.Ledger(2.0, 1e-6, adjacency=Adjacency("replace", rows, "id"))
    words = {**APPROX, "delta": delta, "person": "id", "rows": rows, "mechanism": "moments"}
    with dp.options(clipping=False):
        fit = dp.dp_lm("y ~ x", ROWS, ledger=ledger, **words)
        plain = dp.dp_lm("y ~ x", ROWS, vcov="iid", **words)
    assert ledger.entries[0].events == fit.release.events
    assert len(fit.release.events) == 2
    # A twentieth of the budget, of eps or of squared multipliers.
    much = 0.95 ** (-1.0 if delta == 0 else -0.5)
    assert fit.release.noise.off / plain.release.noise.off == pytest.approx(much)


@pytest.mark.guarding
@pytest.mark.parametrize("kind", ["iter", "sites", "nobody"])
def test_refusals_come_before_a_row_is_read(kind):
    ledger, mines = dp.Ledger(5.0, 1e-5), {name: Mine() for name in (*BOOK, "id")}
    words = {**APPROX, "vcov": "cluster", "person": "id", "rows": 4, "ledger": ledger}
    sites = {"sites": {"A": mines, "B": dict(mines)}, "protocol": "full"}
    error, match, options = {
        "iter": (FrameError, 'vcov="cluster" reads the rows again', {"data": iter([ROWS])}),
        "sites": (ArgumentError, "pooled", sites),
        "nobody": (ArgumentError, "person=", {"data": mines, "person": None}),
    }[kind]
    with pytest.raises(error, match=match):
        dp.dp_lm("y ~ x", **{**words, **options})
    assert ledger.entries == ()


def test_what_is_read_back_is_the_same_and_says_so(tmp_path):
    with dp.simulation(seed=2):
        fit = dp.dp_lm("y ~ x + z", ROWS, person="id", **{**APPROX, "eps": 5.0})
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.bse.equals(fit.bse)
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "cluster (id), bought with 5% of" in text
    assert "rows clustered by person (id; one person: at most" in text


ODD = {
    "no rows": {"y": [], "x": [], "id": []},
    "one person": {"y": ROWS.y[:90], "x": ROWS.x[:90], "id": [7] * 90},
    "nobody": {"y": ROWS.y[:90], "x": ROWS.x[:90], "id": [None] * 90},
    "all different": {"y": ROWS.y[:90], "x": ROWS.x[:90], "id": range(90)},
    "a perfect line": {"y": ROWS.x * 2 - 1, "x": ROWS.x, "id": ROWS.id},
    "nothing complete": {"y": [np.nan] * 9, "x": [1.0] * 9, "id": [1] * 9},
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.filterwarnings("error")
def test_odd_persons_make_tables_in_silence(kind):
    for rows, budget in (("mean", dp.ApproxDP(1e-3, 1e-9)), (3, dp.PureDP(1e6))):
        words = {"codebook": BOOK, "budget": budget, "person": "id", "rows": rows}
        fit = dp.dp_lm("y ~ x", ODD[kind], adjacency="add-remove", **words)
        assert np.isfinite(fit.params).all()
        assert np.isfinite(fit.release.meat.squares).all()
        assert (fit.bse >= fit.bse_noise * (1 - 1e-9)).all()
        assert "cluster (id)" in str(fit.summary())


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("rows", ["mean", 4])
def test_intervals_cover_where_rows_of_a_person_are_alike(heavy, rows):
    """Of 300 fits each: less than 261 intervals of 95 % hold the truth with a chance below 1e-6."""
    hits, plain = [], []
    for seed in range(300):
        result = panel(4_000, seed, heavy=heavy)
        words = {"person": "id", "rows": rows, "eps": 20.0, "delta": 1e-6}
        with dp.simulation(seed=seed):
            fit = dp.dp_lm("y ~ x + z", result, codebook=BOOK, **words)
        alone = smf.wls("y ~ x + z", result, weights=result.share).fit(cov_type="HC1").conf_int()
        for n_covered, ends in ((hits, fit.conf_int().to_numpy()), (plain, alone.to_numpy())):
            n_covered.append((ends[:, 0] <= SLOPES) & (ends[:, 1] >= SLOPES))
    assert (np.mean(hits, axis=0) >= 0.87).all(), np.mean(hits, axis=0)
    assert np.mean(plain, axis=0).min() < 0.87
