"""dp_fdr: what is found, by default and on request, and what the tables say of it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import dpmodels as dp
from dpmodels.errors import FormulaError, NotAvailable
from dpmodels.mechanisms.screening_plan import shares_of

NAMES = [f"g{place}" for place in range(30)]
BOOK = dp.codebook.uniform(NAMES, (0, 2)) | dp.codebook(
    case=["no", "yes"], age=dp.Numeric(0, 100, label="Age at entry"), place=["a", "b", "c"]
)
FORMULA = f"{' + '.join(NAMES)} ~ case"
PRIVATE = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    case = rng.integers(0, 2, 20_000)
    columns = {name: rng.binomial(2, 0.5, 20_000) for name in NAMES[3:]}
    columns |= {name: rng.binomial(2, 0.4 + 0.2 * case) for name in NAMES[:2]}
    columns["g2"] = rng.binomial(2, 0.6 - 0.2 * case)
    columns["case"] = np.array(["no", "yes"])[case]
    columns["age"] = rng.integers(20, 80, 20_000) + 10.0 * case
    columns["place"] = rng.choice(["a", "b", "c"], 20_000)
    return columns


def asked(formula, data, seed=1, **words):
    with dp.simulation(seed=seed):
        return dp.dp_fdr(formula, data, **{**PRIVATE, **words})


def test_columns_that_go_with_the_response_are_found(rows):
    # Of the others one has a p-value of .017 in the rows themselves: q leaves it out.
    fit = asked(FORMULA, rows, most=6, mechanism="peeling", q=0.05)
    assert sorted(fit.rejected) == ["g0", "g1", "g2"]
    table = fit.tidy().set_index("hypothesis")
    assert table.index.tolist() == list(fit.tidy()["hypothesis"])
    assert (np.sign(table.loc[["g0", "g1", "g2"], "estimate"]) == [1, 1, -1]).all()
    exact = {name: np.corrcoef(rows[name], rows["case"] == "yes")[0, 1] for name in fit.names}
    away = fit.params - np.array([exact[name] for name in fit.names])
    # 5e-7 each, of six.
    assert (np.abs(away) < 5.1 * fit.bse_noise).all()
    ends = fit.noise_int(0.99)
    assert ((ends["lower"] < fit.params) & (fit.params < ends["upper"])).all()


def test_one_side_is_asked_for(rows):
    fit = asked(FORMULA, rows, most=6, mechanism="peeling", alternative="smaller")
    assert fit.rejected == ["g2"]


def test_a_number_and_categories_are_held_against_each_other(rows):
    fit = asked("age + place + (g0 > 0) ~ case", rows)
    assert fit.names == ("place[T.b]", "place[T.c]", "g0 > 0[T.True]", "age")
    assert set(fit.rejected) == {"age", "g0 > 0[T.True]"}
    assert asked("case + g5 ~ age", rows).rejected == ["case[T.yes]"]
    text = str(fit.summary())
    assert "Age at entry" in text
    assert "looked at 4" in text


def test_how_many_are_looked_at_follows_from_the_columns(rows):
    assert len(asked(". ~ case", rows, mechanism="peeling").names) == 10 + 33 // 10
    assert len(asked("g0 + g1 ~ case", rows, mechanism="peeling").names) == 2
    fit = asked(". ~ case", rows, mechanism="peeling", most=3)
    assert "Hypotheses not among the 3 were not examined: 30 have" in " ".join(
        str(fit.summary()).split()
    )


def test_the_mechanism_is_chosen_by_public_facts(rows):
    chosen = {
        words: asked(FORMULA, rows, **dict(words)).release.info.name
        for words in (
            (("most", 2),),
            (("most", 30),),
            (("eps", 20.0), ("most", 2)),
            (("eps", 20.0), ("most", 2), ("adjacency", "add-remove")),
        )
    }
    assert list(chosen.values()) == ["peeling", "moments", "moments", "peeling"]


def test_columns_not_looked_at_count(rows):
    fit = asked(FORMULA, rows, most=6, mechanism="peeling")
    assert fit.fdr(0.1).hypotheses == 30
    loose = fit.tidy()["p_adjusted"].to_numpy()
    strict = asked(FORMULA, rows, most=6, mechanism="peeling", method="by").tidy()["p_adjusted"]
    among = (1 / np.arange(1, 31)).sum()
    np.testing.assert_allclose(strict, np.minimum(loose * among, 1), rtol=1e-6)


def test_rows_of_a_person_are_taken_to_be_alike(rows):
    person = {**rows, "id": np.arange(20_000) // 2}
    first = asked("g0 + g5 ~ case", rows, eps=1e4, delta=0.0)
    two = asked("g0 + g5 ~ case", person, eps=1e4, delta=0.0, person="id", rows=2)
    mean = asked("g0 + g5 ~ case", person, eps=1e4, delta=0.0, person="id", rows="mean")
    z = [fit.pvalues["g5"] for fit in (first, two, mean)]
    assert z[1] > z[0]
    assert mean.nobs == 10_000
    np.testing.assert_allclose(two.params, first.params, atol=0.01)
    np.testing.assert_allclose(mean.params, first.params, atol=0.01)


def test_a_subset_and_sites_are_of_the_same_sums(rows):
    half = asked("g0 + g5 ~ case", rows, eps=1e4, delta=0.0, subset="age > 50")
    assert half.release.count == pytest.approx((rows["age"] > 50).sum(), abs=1)
    parts = [
        {name: row[cut] for name, row in rows.items()}
        for cut in (slice(0, 7_000), slice(7_000, None))
    ]
    with dp.simulation(seed=1):
        joint = dp.dp_fdr(
            FORMULA, sites=dict(zip("AB", parts, strict=True)), protocol="pooled", **PRIVATE
        )
    assert joint.release.products.tolist() == asked(FORMULA, rows).release.products.tolist()


def test_intervals_of_a_population_are_refused_and_others_are_there(rows):
    fit = asked("g0 + g5 ~ case", rows)
    with pytest.raises(NotAvailable, match="p-values"):
        fit.conf_int()
    assert fit.glance().loc[0, ["nhypotheses", "nlooked"]].tolist() == [2, 2]
    assert "2 of 2 columns" in repr(fit)
    lost = asked("g0 + g5 ~ case", rows, eps=1e-4, delta=0.0)
    assert lost.rejected == []
    assert "-" in str(lost.summary())


def test_a_session_has_the_verb(rows):
    study = dp.session(rows, BOOK, eps=2.0, delta=1e-6)
    fit = study.fdr("g0 + g1 + g5 ~ case", eps=1.0, q=0.05)
    assert fit.q == 0.05
    assert len(study.register()) == 1


def test_signs_tell_how_many_are_false(rows):
    wide_rows = {**rows, **{f"g{place}": rows["g0"] for place in range(3, 16)}}
    fit = asked(FORMULA, wide_rows, most=20, mechanism="adapt", alternative="larger", q=0.2)
    rejected = set(fit.rejected)
    # One column goes the other way, so that of fifteen two are taken for false: .13.
    assert rejected >= {*NAMES[:2], *NAMES[3:16]}
    assert 2 / 20 <= fit.tidy()["p_adjusted"].min() <= 2 / 15
    table = fit.tidy()
    assert (table["p_value"] > 0.5).any()
    assert fit.glance().loc[0, "method"] == "adapt"
    assert "AdaPT" in str(fit.summary())


@pytest.mark.slow
@pytest.mark.parametrize("effects", [0, 5, 50])
@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_the_rate_of_false_discoveries_is_kept(effects, alike):
    path = Path(__file__).parents[2] / "benchmarks" / "fdr.py"
    spec = importlib.util.spec_from_file_location("fdr_benchmark", path)
    fdr = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fdr)
    rng, shares = np.random.default_rng(7), []
    with dp.simulation(seed=7):
        for _ in range(40):
            _, exact = fdr.drawn(rng, 100_000, effects, alike=alike, columns=300)
            discovered = fdr.found(fdr.released(exact, 1.0, "peeling", most=60))
            shares.append(fdr.shares(discovered, effects))
    false, power = np.array(shares).T
    # Of 40 numbers from 0 to 1 with a mean of .1, by Hoeffding: 40 KL(.45, .1) > log(10⁶).
    assert false.mean() <= 0.45
    # Of 2,000 effects .87 on average: with .8 ten standard errors away.
    assert effects < 50 or power.mean() >= 0.8


def test_the_published_procedure_takes_noise_for_what_a_row_moves(rows):
    words = {"most": 6, "mechanism": "dp_bh"}
    assert asked(FORMULA, rows, **words).rejected == []
    fit = asked(FORMULA, rows, eps=30.0, **words)
    assert sorted(fit.rejected) == ["g0", "g1", "g2"]
    table = fit.tidy().set_index("hypothesis")
    assert fit.valued == "log_p"
    # No p-value is told apart below q/(2 m).
    smallest = np.log(0.1 / 60)
    # A Laplace law's 5e-7 each, of three.
    away = (table.loc[["g0", "g1", "g2"], "estimate"] - smallest) / table["noise_sd"].iloc[0]
    assert away.abs().max() < 10
    ends = fit.noise_int(0.99)
    assert (ends["upper"] <= 0).all()
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "cut off at -6.4." in text
    assert "mechanism='peeling' finds more" in text


def test_persons_widen_the_tests_of_the_published_procedure(rows):
    person = {**rows, "id": np.arange(20_000) // 2}
    words = {"eps": 1e5, "delta": 0.0, "mechanism": "dp_bh"}
    first = asked("g0 + g5 ~ case", rows, **words)
    two = asked("g0 + g5 ~ case", person, person="id", rows=2, **words)
    mean = asked("g0 + g5 ~ case", person, person="id", rows="mean", **words)
    assert two.release.scale == pytest.approx(first.release.scale * 2**0.5, rel=1e-3)
    # Of 10,000 persons.
    assert mean.release.scale == pytest.approx(first.release.scale / 2**0.5, rel=0.01)
    g, y = rows["g5"] - 1.0, (rows["case"] == "yes") * 2.0 - 1
    # A sum over persons of their mean products, as variable as persons are at most.
    z = abs(g @ (y - y.mean())) / 2 / np.sqrt(10_000)
    assert mean.params["g5"] == pytest.approx(np.log(2 * norm.sf(z)), abs=0.01)


@pytest.mark.guarding
@pytest.mark.parametrize("left", ["1", "g0 - g0", "offset(g0) + g1", "offset(g0)"])
def test_a_left_side_without_columns_or_with_an_offset_is_refused(left):
    with pytest.raises(FormulaError, match="names no column on its left side that could be tested"):
        dp.dp_fdr(f"{left} ~ age", {}, **PRIVATE)


def test_a_few_columns_have_correlations_and_not_p_values_alone(rows):
    few = {name: column[:6_000] for name, column in rows.items()}
    fits = [asked("age + g3 + g4 ~ case", few, seed, delta=0.0) for seed in range(8)]
    assert all(np.isfinite(fit.params).all() for fit in fits)
    exact = np.corrcoef(few["age"], few["case"] == "yes")[0, 1]
    ends = [fit.noise_int().loc["age"] for fit in fits]
    assert sum(end["lower"] <= exact <= end["upper"] for end in ends) >= 6
    assert max(fit.bse_noise["age"] for fit in fits) < 0.05


@pytest.mark.parametrize(("chosen", "part"), [(1, 0.5), (3, 0.5), (9, 0.3), (81, 0.1), (1000, 0.1)])
def test_scatters_have_a_larger_part_of_the_budget_where_few_columns_are_chosen(chosen, part):
    shares = shares_of(chosen, with_draws=True)
    assert shares.scatters / shares.products == pytest.approx(part)
    assert sum(shares) == pytest.approx(1.0)
