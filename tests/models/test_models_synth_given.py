"""Synthetic tables of margins that were released before: cells, models, estimates, refusals."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, NotAvailable
from dpmodels.postprocess.residuals import cells
from dpmodels.results.margin import ReleasedMargins

AGES = "cut(age, [0, 25, 50, 75, 100])"
BOOK = dp.codebook(
    age=(0, 100), visits=dp.Integer(0, 4), sex=["F", "M"], drug=["no", "yes"], wage=(0, 80)
)
FORMULA = f"~ {AGES}*sex*drug + visits:{AGES}"
LAWS = ({"budget": dp.ZCDP(0.5)}, {"eps": 1.0})


def people(n_rows, rng):
    """Drugs depend on age in women only."""
    age, sex = rng.uniform(0, 100, n_rows), rng.choice(["F", "M"], n_rows)
    takes = rng.random(n_rows) < 0.2 + 0.6 * ((age > 50) & (sex == "F"))
    return pd.DataFrame(
        {
            "age": age,
            "visits": rng.binomial(4, age / 120),
            "sex": sex,
            "drug": np.where(takes, "yes", "no"),
            "wage": rng.uniform(0, 80, n_rows),
        }
    )


ROWS = people(5_000, np.random.default_rng(1))


def margins(formula=FORMULA, seed=1, **budget):
    with dp.simulation(seed=seed):
        return dp.dp_margins(formula, ROWS, codebook=BOOK, **(budget or LAWS[0]))


@pytest.fixture(scope="module")
def syn():
    return dp.dp_synth("~ .", given=margins())


def test_columns_are_those_of_the_release_with_numbers_in_its_cells(syn):
    rows = syn.rows()
    assert list(rows) == ["age", "sex", "drug", "visits"]
    assert rows["age"].between(0, 100).all()
    assert rows["visits"].isin(range(5)).all()
    assert syn.columns[0].edges == (0.0, 25.0, 50.0, 75.0, 100.0)
    assert syn.columns[3].values[:-1].tolist() == [0, 1, 2, 3, 4]
    fractions = pd.crosstab(pd.cut(rows["age"], syn.columns[0].edges), rows["drug"], normalize=True)
    exact = pd.crosstab(pd.cut(ROWS["age"], syn.columns[0].edges), ROWS["drug"], normalize=True)
    assert np.abs(fractions - exact).to_numpy().max() < 0.03


def test_one_variable_cut_twice_is_a_number_and_a_category():
    syn = dp.dp_synth("~ .", given=margins("~ cut(wage, [0, 40, 80]):cut(wage, [0, 10, 80])"))
    assert syn.names == ("wage", "cut(wage, [0, 10, 80])")
    assert set(syn.rows(100)["cut(wage, [0, 10, 80])"].dropna()) <= {"[0, 10]", "(10, 80]"}


@pytest.mark.expensive
def test_estimates_are_of_the_released_tables_and_assume_nothing_inside_them(syn):
    means = syn.mean("age ~ sex + drug")
    assert not means.assumes
    middle = (np.floor(ROWS["age"] / 25) * 25 + 12.5).clip(12.5, 87.5)
    exact = middle.groupby([ROWS["sex"], ROWS["drug"]]).mean()
    assert (np.abs(means.params - exact) < 6 * means.bse_noise).all()
    assert syn.quantile("~ age", 0.5).assumes == "an even spread of rows within cells"
    assert not syn.quantile("~ visits", 0.5).assumes
    assert "Computed from an earlier release" in syn.summary(notes="all").as_text()


@pytest.mark.parametrize("budget", LAWS)
def test_noise_of_every_margin_is_that_of_the_release(budget):
    fit = margins(**budget)
    source = ReleasedMargins(fit.call, fit.release)
    for term in source.terms:
        np.testing.assert_allclose(source.residuals.table(term), source.unbiased(term), atol=1e-9)
        sd = np.sqrt(source.residuals.cell_variance(term))
        assert sd == pytest.approx(source.noise.cell_sd(term))


def test_intervals_of_quantiles_have_whole_cells(syn):
    fit = syn.quantile("~ age", 0.4)
    for ends in (fit.noise_int(), fit.conf_int()):
        assert ends.to_numpy().tolist() == [[25.0, 50.0]]
    assert syn.quantile("~ visits", 0.5).noise_int().to_numpy().tolist() == [[2.0, 2.0]]


def test_a_declared_structure_may_join_what_was_released(syn):
    fit = dp.dp_synth("~ .", given=margins(), structure="~ age:sex:drug + visits")
    assert fit.structure == "~ age:sex:drug + visits"
    again = dp.dp_synth("~ .", given=fit, structure="~ age:visits")
    assert {again.source.named(pair) for pair in again.source.tree.edges} == {"age:visits"}
    assert dp.dp_synth("~ .", given=fit).structure == syn.structure


@pytest.mark.expensive
def test_a_table_of_an_earlier_release_is_stored_and_charges_nothing(syn, tmp_path):
    study = dp.session(ROWS, BOOK, eps=1.0, delta=1e-6)
    fit = study.margins("~ sex*drug", eps=0.5)
    spent = study.spent
    for synthetic in (
        study.synth("~ .", given=fit),
        dp.dp_synth("~ .", given=syn, structure="~ age:sex"),
    ):
        path = tmp_path / f"{len(synthetic.columns)}.nc"
        synthetic.save(path)
        loaded = dp.load(path)
        pd.testing.assert_frame_equal(loaded.rows(50), synthetic.rows(50))
        assert loaded.structure == synthetic.structure
    assert study.spent == spent
    assert [type(result).__name__ for result in study.results] == ["MarginsResult", "SynthResult"]


def test_missing_values_are_dropped_and_not_imputed():
    rows = ROWS.assign(sex=ROWS["sex"].where(ROWS["age"] > 20))
    with dp.simulation(seed=1):
        syn = dp.dp_synth("~ sex + drug", rows, codebook=BOOK, budget=dp.ZCDP(50.0))
    takes = rows.dropna().groupby("sex")["drug"].agg(lambda drug: (drug == "yes").mean())
    fit = syn.lm("drug ~ sex")
    assert fit.params.to_numpy() == pytest.approx([takes["F"], takes["M"] - takes["F"]], abs=0.01)
    for call in (syn.lm, syn.glm):
        with pytest.raises(NotAvailable, match="missing='impute' is not available"):
            call("drug ~ sex", missing="impute")
        with pytest.raises(ArgumentError, match="missing="):
            call("drug ~ sex", missing="mean")


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("error", "words", "reason"),
    [
        (ArgumentError, {"data": ROWS}, "data= is set beside given="),
        (ArgumentError, {"eps": 1.0}, "eps= is set beside given="),
        (ArgumentError, {"cuts": {"age": 3}}, "cuts= is set beside given="),
        (ArgumentError, {"structure": "~ visits:sex"}, "'visits:sex'"),
        (ArgumentError, {"structure": None}, "expected 'auto'"),
        (ArgumentError, {"given": ROWS}, "type DataFrame"),
        (FormulaError, {"formula": "~ age + sex"}, "expected '~ .'"),
    ],
)
def test_what_the_release_settles_is_refused(error, words, reason):
    with pytest.raises(error, match=reason):
        dp.dp_synth(**{"formula": "~ .", "given": margins("~ visits + sex"), **words})


def test_all_pairs_of_many_columns_have_a_graph_within_the_limit():
    book = dp.codebook(**{f"v{i}": list(range(9)) for i in range(6)})
    codes = np.random.default_rng(2).integers(0, 9, (4_000, 1)) + np.zeros((1, 6), dtype=int)
    rows = pd.DataFrame(codes, columns=list(book))
    with dp.simulation(seed=1):
        fit = dp.dp_margins("~ .**2", rows, codebook=book, budget=dp.ZCDP(1.0))
    tree = dp.dp_synth("~ .", given=fit).source.tree
    assert len(tree.edges) < len(list(combinations(range(6), 2)))
    assert max(cells(clique, tree.sizes) for clique in tree.cliques) <= 20_000


@pytest.mark.product
def test_independent_columns_are_printed_as_such():
    rng = np.random.default_rng(5)
    book = dp.codebook(**{f"v{i}": list(range(4)) for i in range(40)})
    rows = pd.DataFrame(rng.integers(0, 4, (1_000, 40)), columns=list(book))
    with dp.simulation(seed=1):
        syn = dp.dp_synth("~ .", rows, codebook=book, budget=dp.ZCDP(0.002))
        alone = dp.dp_synth("~ .", rows, codebook=book, budget=dp.ZCDP(0.002), structure="~ v0")
    assert "Noise" in syn.summary().as_text()
    assert "No table of two columns was released" in alone.summary().as_text()
    assert not alone.edges().size
    assert alone.source.released.sds[(0,)] < 0.8 * syn.source.released.sds[(0,)]
