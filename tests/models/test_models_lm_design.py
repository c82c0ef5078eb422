"""Regressions under a survey design: R's values, places by weight, refusals."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design.parts import SLOTS
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.mechanisms import sampled_rows
from dpmodels.postprocess.unit_scores import squares_of_units

FOLDER = Path(__file__).parent / "design_reference"
ROWS = pd.read_csv(FOLDER / "table.csv").astype({"z": str})
STORED = json.loads((FOLDER / "survey.json").read_text())
BOOK = dp.codebook(
    y=(0, 100),
    x=(0, 20),
    z=["0", "1"],
    visits=(0, 9),
    group=["a", "b", "c"],
    stratum=["north", "south", "east", "west"],
)
NAMES = ["Intercept", "x", "group[T.b]", "group[T.c]"]
WEIGHTS = {"weights": "w", "bounds": (1, 50), "weights_are": "design"}
DESIGNS = {"weights": dp.design(**WEIGHTS), "psus": dp.design(psu="psu", **WEIGHTS)}
SIZES = {"north": 12, "south": 9, "east": 40, "west": 8}
STRATIFIED = {
    "strata": dp.design(strata="stratum", **WEIGHTS),
    "both": dp.design(psu="psu", strata="stratum", **WEIGHTS),
    "finite": dp.design(psu="psu", strata="stratum", fpc=SIZES, **WEIGHTS),
}
HUGE = {"codebook": BOOK, "budget": dp.ZCDP(1e30)}


def covariance(stored):
    """Return the covariance of stored coefficients."""
    size = len(stored["estimate"])
    return np.reshape(stored["covariance"], (size, size))


@pytest.mark.expensive
@pytest.mark.parametrize(
    ("kind", "mechanism"), list(product(DESIGNS, ["moments", "scores", "scores_pure"]))
)
def test_a_huge_budget_gives_r_svyglm(kind, mechanism):
    """Errors to the lattice of squared scores, where residuals are not cut."""
    stored = STORED[kind]["gaussian"]
    fit = dp.dp_lm("y ~ x + group", ROWS, design=DESIGNS[kind], mechanism=mechanism, **HUGE)
    np.testing.assert_allclose(fit.params[NAMES], stored["estimate"], rtol=1e-8)
    errors = np.sqrt(np.diag(covariance(stored)))
    if mechanism == "moments":
        assert fit.bse[NAMES].to_numpy() == pytest.approx(errors, rel=2e-3)


@pytest.mark.expensive
@pytest.mark.parametrize("kind", STRATIFIED)
def test_a_huge_budget_gives_errors_within_strata(kind):
    """Of rows and of units, with the populations of strata; in domains of rows."""
    words = {"design": STRATIFIED[kind], "mechanism": "moments", **HUGE}
    stored = STORED[kind]["gaussian"]
    fit = dp.dp_lm("y ~ x + group", ROWS, **words)
    np.testing.assert_allclose(fit.params[NAMES], stored["estimate"], rtol=1e-8)
    errors = np.sqrt(np.diag(covariance(stored)))
    assert fit.bse[NAMES].to_numpy() == pytest.approx(errors, rel=3e-3)
    errors = np.sqrt(np.diag(covariance(STORED[kind]["domain"])))
    domain = dp.dp_lm("y ~ x", ROWS, subset='group == "b"', **words)
    if kind == "strata":
        assert domain.bse.to_numpy() == pytest.approx(errors, rel=3e-3)
    else:  # Units without a row in the domain are not counted by stratum
        assert domain.release.units.scores.factors == ()


@pytest.mark.expensive
@pytest.mark.parametrize(("kind", "mechanism"), list(product(DESIGNS, ["scores", "gradients"])))
def test_a_huge_budget_gives_r_svyglm_of_counts(kind, mechanism):
    stored = STORED[kind]["poisson"]
    words = {"family": "poisson", "mechanism": mechanism, "design": DESIGNS[kind]}
    fit = dp.dp_glm("visits ~ x + group", ROWS, **words, **HUGE)
    np.testing.assert_allclose(fit.params[NAMES], stored["estimate"], rtol=1e-3, atol=1e-4)
    errors = np.sqrt(np.diag(covariance(stored)))
    assert fit.bse[NAMES].to_numpy() == pytest.approx(errors, rel=0.03)


@pytest.mark.expensive
@pytest.mark.parametrize(("kind", "mechanism"), list(product(DESIGNS, ["objective", "gradients"])))
def test_a_huge_budget_gives_r_svyglm_of_two_levels(kind, mechanism):
    stored = STORED[kind]["binomial"]
    words = {"mechanism": mechanism, "design": DESIGNS[kind]}
    fit = dp.dp_glm("z ~ x + group", ROWS, **words, **HUGE)
    np.testing.assert_allclose(fit.params[NAMES], stored["estimate"], rtol=1e-3, atol=1e-4)


@pytest.mark.expensive
def test_a_finite_population_makes_errors_shorter():
    design = dp.design(psu="psu", fpc=69, **WEIGHTS)
    finite, infinite = (
        dp.dp_lm("y ~ x", ROWS, design=design, mechanism="moments", **HUGE)
        for design in (design, DESIGNS["psus"])
    )
    ratio = (finite.bse / infinite.bse).to_numpy()
    assert ratio == pytest.approx(np.sqrt(1 - 14 / 69), rel=0.01)


@pytest.mark.expensive
def test_a_subset_is_a_domain_of_the_design():
    stored = STORED["psus"]["domain"]
    words = {"design": DESIGNS["psus"], "subset": 'group == "b"', "mechanism": "moments"}
    fit = dp.dp_lm("y ~ x", ROWS, **words, **HUGE)
    np.testing.assert_allclose(fit.params, stored["estimate"], rtol=1e-4)
    assert fit.bse.to_numpy() == pytest.approx(np.sqrt(np.diag(covariance(stored))), rel=0.03)


@pytest.mark.parametrize("weight", [np.nan, 0.0, -2.0, 50.5, np.inf])
def test_a_row_with_an_invalid_weight_does_not_count(weight):
    data = ROWS.astype({"w": float})
    data.loc[7, "w"] = weight
    fits = [
        dp.dp_lm("y ~ x", table, design=DESIGNS["weights"], mechanism="moments", **HUGE)
        for table in (data, data.drop(index=7))
    ]
    np.testing.assert_allclose(fits[0].params, fits[1].params, rtol=1e-4)


def parts(data, design, cap):
    """Return the persons and places of rows under a cap."""
    from dpmodels.models.lm import lm_spec
    from dpmodels.request import requested

    words = {"weights": None, "row_norm": None, "vcov": None, "lump": None}
    request = requested("lm", "y ~ x", BOOK, 1.0, 1e-6, None, None, design=design, **words)
    bound = lm_spec(request).private.bind(data)
    for _ in bound.rows.unit_weights():
        pass
    capped = bound.rows.capped(cap)
    parts = list(capped.parts())
    persons = np.concatenate([part.persons for part in parts])
    places = np.concatenate([part.places for part in parts])
    return persons, places, capped.nrows


@pytest.mark.parametrize(("kind", "cap"), list(product(DESIGNS, [1.0, 7.0, 21.0, 50.4, 5040.0])))
def test_no_unit_takes_more_places_than_it_has(kind, cap):
    """Brute force: places of any unit, whatever its weights, and all places of all units."""
    rng, size = np.random.default_rng(3), 400
    picks = rng.integers(0, len(ROWS), size)
    data = ROWS.iloc[picks].astype({"w": float}).reset_index(drop=True)
    data["w"] = np.where(rng.random(size) < 0.5, rng.uniform(1, 50, size), data["w"])
    data["psu"] = rng.integers(0, 30, size)
    persons, places, n_slots = parts(data, DESIGNS[kind], cap)
    n_units = size if kind == "weights" else 30
    assert places.sum() == n_slots == n_units * SLOTS
    places_of_persons = np.bincount(persons[persons >= 0], places[persons >= 0], minlength=n_units)
    assert places_of_persons.max() <= SLOTS
    assert (places >= 0).all()


def test_whole_weights_take_whole_places():
    persons, places, _ = parts(ROWS, DESIGNS["weights"], 42.0)
    expected = (ROWS.w * SLOTS / 42).to_numpy()
    places_of_persons = np.bincount(persons[persons >= 0], places[persons >= 0])
    np.testing.assert_array_equal(places_of_persons, expected)


@pytest.mark.parametrize(
    ("verb", "words", "says"),
    [
        (dp.dp_lm, {"vcov": "HC"}, "its own standard errors"),
        (dp.dp_lm, {"lump": 10}, "no counts of levels"),
        (dp.dp_lm, {"weights": "x"}, "precision weights"),
        (dp.dp_lm, {"rows": 3}, "unit of protection"),
        (dp.dp_glm, {"family": "ordinal"}, "computed from counts"),
        (dp.dp_glm, {"mechanism": "counts", "family": "multinomial"}, "not known here"),
        (dp.dp_glm, {"ridge": dp.tune([None, 10])}, "not to be divided"),
        (dp.dp_pca, {}, "takes no survey design"),
    ],
)
def test_what_takes_no_design_says_so(verb, words, says):
    formula = {dp.dp_glm: "group ~ x", dp.dp_pca: "~ x + y"}.get(verb, "y ~ x")
    with pytest.raises(ArgumentError, match=says):
        verb(formula, ROWS, codebook=BOOK, eps=1.0, delta=1e-6, design=DESIGNS["weights"], **words)


def test_rows_have_to_be_in_one_place():
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "design": DESIGNS["weights"]}
    ledger = dp.Ledger(budget=dp.ZCDP(1.0))
    sites = {"a": ROWS[:40].copy(), "b": ROWS[40:].copy()}
    with pytest.raises(ArgumentError, match="one table"):
        dp.dp_lm("y ~ x", sites=sites, protocol="pooled", ledger=ledger, **words)
    with pytest.raises(FrameError, match="several times"):
        dp.dp_lm("y ~ x", iter([ROWS]), ledger=ledger, **words)
    assert not ledger.entries


def test_the_cap_is_charged_with_the_fit():
    ledger = dp.Ledger(budget=dp.ApproxDP(1.0, 1e-6), person="psu")
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "design": DESIGNS["psus"]}
    fit = dp.dp_lm("y ~ x", ROWS, ledger=ledger, **words)
    assert fit.release.units is not None
    with pytest.raises(dp.errors.LedgerError):
        dp.dp_lm("y ~ x", ROWS, ledger=ledger, **words | {"eps": 0.05})


@pytest.mark.product
def test_a_fit_can_be_saved_and_loaded(tmp_path):
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "design": DESIGNS["psus"]}
    for fit in (dp.dp_lm("y ~ x", ROWS, **words), dp.dp_glm("z ~ x", ROWS, **words)):
        path = tmp_path / f"{type(fit).__name__}.nc"
        fit.save(path)
        assert str(dp.load(path).summary()) == str(fit.summary())


@pytest.mark.parametrize("seed", range(3))
def test_long_rows_do_not_lead_a_step_past_the_estimate(seed):
    """Of zeros and lognormal numbers in wide bounds; scores of whole rows led far off."""
    rng = np.random.default_rng(seed)
    x = np.minimum((rng.random(5_000) < 0.3) * rng.lognormal(0, 1, 5_000), 60)
    rows = pd.DataFrame({"x": x, "y": np.clip(50 + 2 * x + rng.normal(0, 10, 5_000), 0, 120)})
    rows["w"] = rng.lognormal(1, 0.8, 5_000).clip(1, 50)
    with dp.simulation(seed=seed):
        words = {"codebook": dp.codebook(x=(0, 60), y=(0, 120)), "design": DESIGNS["weights"]}
        fit = dp.dp_lm("y ~ x", rows, eps=1.0, delta=1e-6, **words)
    assert abs(fit.params["x"] - 2) < 5 * fit.bse["x"] < 10


@pytest.mark.parametrize(
    ("budget", "law"), [({"eps": 8.0}, "laplace"), ({"budget": dp.ZCDP(4.0)}, "gaussian")]
)
def test_the_cap_is_chosen_by_the_law_of_the_noise_in_its_counts(monkeypatch, budget, law):
    noises = []

    def recorded(mechanism, ends, counts, noise, price, columns):
        noises.append(noise)
        return chosen_cap(mechanism, ends, counts, noise, price, columns)

    chosen_cap = sampled_rows.Sampled._cap
    monkeypatch.setattr(sampled_rows.Sampled, "_cap", recorded)
    words = {"codebook": BOOK, "mechanism": "moments", "design": DESIGNS["weights"], **budget}
    dp.dp_lm("y ~ x", ROWS, **words)
    assert [noise.law for noise in noises] == [law]


def test_errors_have_what_clipping_takes_off_squares():
    """Planted: long scores are clipped, so that squares of clipped scores are too small."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"x": rng.uniform(0, 20, 4_000), "w": rng.lognormal(1, 1, 4_000)})
    rows["y"] = np.clip(40 + rows["x"] + 6 * rng.standard_t(3, 4_000), 0, 100)
    rows["w"] = rows["w"].clip(1, 50)
    with dp.simulation(seed=1):
        words = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6, "design": DESIGNS["weights"]}
        fit = dp.dp_lm("y ~ x", rows, **words)
    assert fit.release.meat.units.cut > 0
    meat, _ = squares_of_units(fit.release.meat, fit.release)
    lost = 2 * np.sqrt(meat.most) * meat.units.cut / 2
    assert meat.squares == pytest.approx(fit.release.meat.squares + lost * np.eye(2))


def planned(guarantee, mechanism="auto"):
    """Return the name of the mechanism of the first line."""
    from dpmodels.models.lm import lm_spec
    from dpmodels.request import requested

    words = {"weights": None, "row_norm": None, "vcov": None, "lump": None}
    design = DESIGNS["weights"]
    request = requested("lm", "y ~ x", BOOK, None, 0.0, guarantee, None, design=design, **words)
    spec = lm_spec(request)
    return spec.choose(mechanism, [spec.private.bind(ROWS)])[0].info.name


@pytest.mark.parametrize("rho", [1e-4, 0.02, 1e6])
def test_a_step_starts_from_a_line_unless_the_guarantee_is_pure(rho):
    """Moments alone identify nothing at budgets where a line does."""
    assert planned(dp.ZCDP(rho)) == "scores"
    assert planned(dp.PureDP(1.0)) == "moments"


@pytest.mark.expensive
def test_what_a_pure_guarantee_does_not_identify_says_what_to_write():
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ x + group", ROWS, codebook=BOOK, design=DESIGNS["weights"], eps=0.1)
    assert not fit.identified.any()
    note = " ".join(str(fit.summary()).split())
    assert 'Write mechanism="scores" with delta=1e-6 or budget=dp.ZCDP(rho)' in note


@pytest.mark.parametrize("n_rows", [1, 2])
def test_a_fit_of_one_or_two_rows_prints_and_has_a_table(n_rows):
    weights = dp.design(weights="w", bounds=(0.5, 8), weights_are="design")
    book = dp.codebook(y=(0, 10), x=(-5, 5), w=(0.5, 8), design=weights)
    rows = {"y": [1.0] * n_rows, "x": [2.0] * n_rows, "w": [1.0] * n_rows}
    for seed in range(4):
        with dp.simulation(seed=seed):
            fit = dp.dp_lm("y ~ x", rows, codebook=book, eps=5.0)
        assert len(fit.tidy()) == 2
        assert "Private linear regression" in str(fit)


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("verb", "formula"), [(dp.dp_lm, "y ~ x * group"), (dp.dp_glm, "z ~ x + group")]
)
def test_units_of_which_no_row_counts_are_answered_by_noise(verb, formula):
    """An error here, after the charge, would say that no row meets a condition."""
    for rows, subset in ((ROWS, "visits < 0"), (ROWS.assign(psu=np.nan), None)):
        fit = verb(formula, rows, subset=subset, design=DESIGNS["psus"], codebook=BOOK, eps=1.0)
        assert {*fit.params.index} >= {*NAMES}
