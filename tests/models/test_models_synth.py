"""Synthetic tables: rows, their stamp, estimates with intervals, and what they refuse."""

import re
import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import dpmodels as dp
from dpmodels.errors import ArgumentError, FormulaError, FrameError, NotAvailable, SyntheticWarning
from dpmodels.formula.cut_columns import all_pairs, cut_columns
from dpmodels.models.release import specified
from dpmodels.results import synthetic_source
from dpmodels.results.validate import require_release

BOOK = dp.codebook(
    age=(0, 80),
    children=dp.Integer(0, 4),
    sex=["F", "M"],
    drug=["no", "yes"],
    day=dp.Date("2020-01-01", "2020-12-31"),
)
N_ROWS = 6_000


def people(n_rows=N_ROWS, seed=1):
    rng = np.random.default_rng(seed)
    sex = rng.random(n_rows) < 0.5
    age = np.clip(20 + 12 * sex + rng.gamma(4, 5, n_rows), 0, 80)
    drug = rng.random(n_rows) < 1 / (1 + np.exp(3.2 - 0.06 * age))
    return pd.DataFrame(
        {
            "age": age,
            "children": rng.binomial(4, 0.2 + 0.3 * drug),
            "sex": np.where(sex, "M", "F"),
            "drug": np.where(drug, "yes", "no"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n_rows), "D"),
        }
    )


ROWS = people()


def synthetic(formula="~ age + children + sex + drug", data=ROWS, *, rho=0.5, seed=1, **options):
    with dp.simulation(seed=seed):
        return dp.dp_synth(formula, data, codebook=BOOK, budget=dp.ZCDP(rho), **options)


@pytest.fixture(scope="module")
def syn():
    return synthetic(cuts={"age": 8})


def test_rows_are_of_the_declared_kinds_and_the_same_at_each_call(syn):
    rows = syn.rows()
    assert len(rows) == N_ROWS
    assert list(rows) == ["age", "children", "sex", "drug"]
    assert rows["age"].between(0, 80).all()
    assert rows["children"].isin(range(5)).all()
    assert set(rows["sex"]) == {"F", "M"}
    pd.testing.assert_frame_equal(rows, syn.rows())
    assert not rows.equals(syn.rows(draw=1))


def test_rows_look_like_the_data(syn):
    rows = syn.rows(50_000)
    exact = ROWS.groupby(["sex", "drug"]).size() / N_ROWS
    fractions = rows.groupby(["sex", "drug"], observed=False).size() / len(rows)
    assert np.abs(exact - fractions).max() < 0.02
    assert abs(rows["age"].mean() - ROWS["age"].mean()) < 1


def misplaced(rows):
    """Return the mean share of rows that margins of two columns misplace beside those of ROWS."""
    errors = []
    for names in combinations(["children", "sex", "drug"], 2):
        counts = [frame.groupby(list(names)).size() / len(frame) for frame in (rows, ROWS)]
        errors.append(counts[0].sub(counts[1], fill_value=0).abs().sum() / 2)
    return np.mean(errors)


@pytest.mark.product
def test_rows_near_public_rows_are_closer_where_noise_hides_the_tables():
    near, plain = [], []
    for seed in range(4):
        syn = synthetic("~ children + sex + drug", rho=0.0003, seed=seed)
        plain.append(misplaced(syn.rows(N_ROWS)))
        near.append(misplaced(syn.rows(N_ROWS, public=people(2_000, seed=7))))
    assert np.mean(near) < 0.85 * np.mean(plain)


@pytest.mark.product
def test_public_rows_of_another_population_change_little(syn):
    other = people(2_000, seed=7).assign(age=5.0, children=4, drug="no")
    near = syn.rows(N_ROWS, public=other)
    assert misplaced(near) < misplaced(syn.rows(N_ROWS)) + 0.01
    assert near.equals(syn.rows(N_ROWS, public=other))
    assert near.attrs == syn.rows(10).attrs
    declared = synthetic(structure="~ age:drug + children + sex", cuts={"age": 8})
    assert declared.source.model_near(other).tree == declared.source.tree


@pytest.mark.expensive
def test_public_rows_are_read_by_the_codebook(syn):
    public = people(500, seed=7)
    beyond = public.assign(age=public["age"].where(public["age"] < 60, 1e6))
    capped = public.assign(age=public["age"].where(public["age"] < 60, 80.0))
    assert syn.rows(200, public=beyond).equals(syn.rows(200, public=capped))
    assert syn.rows(200, public=public.to_dict("list")).equals(syn.rows(200, public=public))
    with pytest.raises(ArgumentError, match="public= has no rows"):
        syn.rows(200, public=public.iloc[:0])
    with pytest.raises(ArgumentError, match="rows of a synthetic table"):
        syn.rows(200, public=syn.rows(50))
    with pytest.raises(FrameError, match="drug"):
        syn.rows(200, public=public.drop(columns="drug"))


def test_dates_and_missing_values_are_drawn():
    data = ROWS.assign(day=ROWS["day"].where(ROWS["sex"] == "F"))
    rows = synthetic("~ day + sex", data, cuts=4).rows()
    missing = rows["day"].isna()
    assert rows.loc[~missing, "day"].between("2020-01-01", "2020-12-31").all()
    assert abs(missing[rows["sex"] == "M"].mean() - 1) < 0.05
    assert missing[rows["sex"] == "F"].mean() < 0.05


def test_the_stamp_is_written_to_parquet_and_warned_of(syn, tmp_path):
    path = tmp_path / "rows.parquet"
    syn.rows(500).to_parquet(path)
    rows = pd.read_parquet(path)
    assert "lm()" in rows.attrs[SyntheticWarning.KEY]["note"]
    with pytest.warns(SyntheticWarning, match="dp_synth"):
        dp.dp_mean("~ age", rows, codebook=BOOK, eps=1.0)


def test_estimates_are_near_those_of_the_rows(syn):
    middle = (np.floor(ROWS["age"] / 10) * 10 + 5).clip(5, 75)
    # Cells are closed above: no age here is a multiple of 10.
    design = np.column_stack([np.ones(N_ROWS), ROWS["sex"] == "M", ROWS["drug"] == "yes"])
    exact = np.linalg.lstsq(design.astype(float), middle, rcond=None)[0]
    fit = syn.lm("age ~ sex + drug")
    assert list(fit.params.index) == ["Intercept", "sex[T.M]", "drug[T.yes]"]
    assert (np.abs(fit.params - exact) < 6 * fit.bse_noise).all()
    assert not fit.assumes
    means = syn.mean("age ~ sex")
    assert (np.abs(means.params - middle.groupby(ROWS["sex"]).mean()) < 6 * means.bse_noise).all()
    shares = syn.table("~ sex + drug")
    exact = ROWS.groupby(["sex", "drug"]).size() / N_ROWS
    assert (np.abs(shares.params - exact) < 6 * shares.bse_noise).all()
    median = syn.quantile("~ age", 0.5)
    assert abs(median.params.iloc[0] - ROWS["age"].median()) < 3


@pytest.mark.parametrize("power", [1, 2])
def test_rows_move_sums_by_where_they_are_in_their_cells(power, monkeypatch):
    source = synthetic("~ age + sex + drug", cuts=4).source
    grid, cells = synthetic_source.grid_of(source, [0, 1, 2]), source.columns[0].cells

    def scores(values, _):
        return values["age"][:, None] ** power

    def by_point(points, cell):
        rows = grid.table.model.sum(axis=(1, 2))[:-1]
        return [points[:, None] ** power * of[cell, None] for of in (rows, cells.slopes @ rows)]

    (values, nodes), moved = grid.points, grid.moves(scores, 1)
    is_complete = np.isfinite(values["age"])
    ages = values["age"][is_complete]
    cell = nodes.at(grid.codes[:1].T)[is_complete, 0]
    sums = by_point(cells.points, cells.cell)
    expected = cells.at_points(sums, by_point(ages, cell), ages, cell)
    np.testing.assert_allclose(moved[2][is_complete], expected)
    # Of released rows, not those of the model, that is the distance from the mean of the cell.
    away = ages**power - cells.means(cells.points**power)[cell]
    np.testing.assert_allclose(moved[2][is_complete, 0], away, atol=0.1 * 40**power)
    assert not moved[2][~is_complete].any()
    monkeypatch.setattr(synthetic_source, "MOST_POINTS", 150)
    in_parts = synthetic_source.grid_of(source, [0, 1, 2]).moves(scores, 1)
    np.testing.assert_allclose(in_parts[0].covariance, moved[0].covariance)
    np.testing.assert_allclose(in_parts[1], moved[1])


def test_slopes_of_groups_bend_only_where_groups_depend_on_the_number():
    source = synthetic("~ age + sex + drug", cuts=4).source
    grid, cells = synthetic_source.grid_of(source, [0, 1, 2]), source.columns[0].cells
    points = (cells.points, cells.cell)

    def bends_of(scores):
        return cells.by_bends(grid._along(0, *points, scores, grid._weights(0))[2])[:, 0]

    ages = bends_of(lambda values, _: values["age"][:, None])
    np.testing.assert_allclose(ages, 0, atol=1e-9 * N_ROWS)
    groups = bends_of(lambda values, _: (values["age"] * (values["sex"] == 0))[:, None])
    assert (np.abs(groups) > 1e-3).sum() == 2


@pytest.mark.product
def test_what_the_released_tables_do_not_determine_is_flagged(syn):
    assert not syn.mean("age ~ sex").assumes
    assert not syn.glm("drug ~ age + sex").assumes
    assert "released tables" in syn.mean("age ~ sex + drug").assumes
    chain = synthetic(structure="~ age:drug + drug:children")
    assert chain.structure.count(":") == 2
    assert len(chain.edges()) == 2
    assert chain.lm("children ~ age").assumes == "conditional independence"
    assert "conditional independence" in chain.glm("drug ~ age + children").assumes
    assert "Assumes conditional independence" in chain.lm("children ~ age").summary().as_text()
    with pytest.raises(NotAvailable, match=r"structure= was declared"):
        chain.test()


@pytest.mark.expensive
def test_terms_that_noise_hides_are_an_assumption_of_the_others():
    rare = ROWS.assign(drug=np.where(np.arange(N_ROWS) < 5, "yes", "no"))
    syn = synthetic("~ age + sex + drug", rare, rho=0.02)
    fit = syn.lm("age ~ sex + drug")
    assert np.isnan(fit.params["drug[T.yes]"])
    assert fit.assumes == "no effect of terms without an estimate"
    assert "Assumes no effect of terms" in fit.summary().as_text()
    assert not syn.lm("age ~ sex").assumes


@pytest.mark.expensive
def test_bounds_that_cut_most_rows_are_an_assumption():
    wage = np.random.default_rng(0).normal(50, 12, N_ROWS)
    rows = ROWS[["sex"]].assign(wage=wage)
    for upper, is_assumed in ((25, True), (100, False)):
        book = dp.codebook(wage=(0, upper), sex=["F", "M"])
        with dp.simulation(seed=1):
            syn = dp.dp_synth("~ .", rows, codebook=book, budget=dp.ZCDP(0.02))
        text = " ".join(str(syn.mean("wage ~ sex").summary()).split())
        assert ("Assumes that rows hidden by noise lie near the others" in text) == is_assumed
        assert "clipped to them; intervals do not account for this" in text
        assert ("hidden by noise" in syn.lm("wage ~ sex").assumes) == is_assumed
        assert not syn.table("~ sex").assumes


@pytest.mark.expensive
def test_tails_without_an_assumption_go_by_the_counts_before_them():
    rng = np.random.default_rng(0)
    wages = np.minimum(10 / rng.random(N_ROWS), 1e5)
    rows = ROWS[["sex"]].assign(wage=wages, score=rng.normal(50, 12, N_ROWS))
    book = dp.codebook(wage=(0, 1e5), score=(-100, 200), sex=["F", "M"])
    with dp.simulation(seed=1):
        syn = dp.dp_synth("~ wage + score", rows, codebook=book, budget=dp.ZCDP(0.02))
    is_light = [column.histogram.is_light for column in syn.source.columns]
    assert is_light == [not syn.mean(f"~ {name}").assumes for name in ("wage", "score")]
    assert is_light == [False, True]


@pytest.mark.guarding
@pytest.mark.expensive
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_many_rows_are_counted_in_finer_cells_which_files_keep(tmp_path, adjacency):
    few, many = (synthetic("~ age + sex", rho=rho, adjacency=adjacency) for rho in (0.002, 5.0))
    assert len(many.release.histograms) > 2 * len(few.release.histograms)
    for fit in (few, many):
        fit.save(tmp_path / "syn.nc", overwrite=True)
        loaded = dp.load(tmp_path / "syn.nc")
        pd.testing.assert_frame_equal(loaded.rows(50), fit.rows(50))
        pd.testing.assert_series_equal(loaded.mean("~ age").bse, fit.mean("~ age").bse)


@pytest.mark.expensive
def test_declared_tables_of_three_columns_determine_what_pairs_do_not():
    fit = synthetic("~ age + children + sex + drug", structure="~ sex:drug:children + age")
    assert fit.structure == "~ children:sex:drug + age"
    means = fit.mean("children ~ sex + drug")
    exact = ROWS.groupby(["sex", "drug"])["children"].mean()
    assert not means.assumes
    assert (np.abs(means.params - exact) < 6 * means.bse_noise).all()


def test_a_table_that_is_loaded_gives_the_same_rows_and_estimates(syn, tmp_path):
    syn.save(tmp_path / "syn.nc")
    loaded = dp.load(tmp_path / "syn.nc")
    pd.testing.assert_frame_equal(loaded.rows(50), syn.rows(50))
    pd.testing.assert_frame_equal(
        loaded.lm("age ~ sex").tidy(), syn.lm("age ~ sex").tidy(), check_exact=True
    )


@pytest.mark.guarding
@pytest.mark.parametrize("margins", [(), ((),), (((0, 9),),), (((1, 0),),), (((-1, 0),),)])
def test_margins_of_other_columns_are_refused(syn, margins):
    spec = specified(syn.request, syn.release)
    with pytest.raises(FrameError, match=r"release\.margins"):
        require_release(spec, replace(syn.release, margins=margins))


@pytest.mark.expensive
def test_a_tail_that_another_column_shows_is_assumed():
    """Far rows of u are far rows of y, under a bulk that hides them; z has a bulk alone."""
    rng = np.random.default_rng(3)
    u = np.minimum(10 * rng.random(20_000) ** -1.0, 1e4)
    bulk = rng.gamma(4, 20, (2, len(u)))
    rows = pd.DataFrame({"u": u, "y": 0.5 * u + bulk[0], "z": bulk[1]})
    book = dp.codebook(u=(0, 1e4), y=(0, 1e4), z=(0, 1e4))
    with dp.simulation(seed=2):
        syn = dp.dp_synth("~ u + y + z", rows, codebook=book, budget=dp.ZCDP(0.05))
    source = syn.source
    assert [bool(column.uncertain_cells) for column in source.columns] == [True, False, False]
    assert [source.has_uncertain_tail(i) for i in range(3)] == [True, True, False]
    assert "hidden by noise" in syn.mean("~ y").assumes
    assert not syn.mean("~ z").assumes


@pytest.mark.expensive
def test_a_small_budget_says_that_noise_wins():
    fit = synthetic("~ age + children + sex + drug", ROWS.head(300), rho=1e-4)
    text = fit.summary().as_text()
    assert "Noise" in text
    assert "independent" in text or "wins" in text
    assert len(fit.rows(10)) == 10


def test_pairs_outside_the_graph_are_tested():
    rng = np.random.default_rng(3)
    data = ROWS.assign(sex=rng.choice(["F", "M"], N_ROWS))
    fit = synthetic(data=data, rho=0.01)
    outside = fit.test().tidy()
    assert {"term", "statistic", "df", "p_value"} <= set(outside)
    assert (outside["p_value"] > 1e-6).all()


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ArgumentError, lambda syn: syn.rows(0)),
        (ArgumentError, lambda syn: syn.rows(-1)),
        (ArgumentError, lambda syn: syn.quantile("~ age", 1.5)),
        (ArgumentError, lambda syn: syn.glm("drug ~ age", "gamma")),
        (FormulaError, lambda syn: syn.lm("age ~ wage")),
        (FormulaError, lambda syn: syn.table("~ wage")),
        (FormulaError, lambda syn: syn.glm("age ~ sex")),
        (FormulaError, lambda syn: syn.quantile("drug ~ sex")),
        (NotAvailable, lambda syn: syn.conf_int()),
    ],
)
def test_bad_calls_are_refused(syn, error, call):
    with pytest.raises(error):
        call(syn)


def test_the_mean_of_two_levels_is_the_share_of_the_second(syn):
    shares = syn.table("~ sex")
    pd.testing.assert_series_equal(
        syn.mean("~ sex").tidy().loc[0, ["estimate", "conf_low", "conf_high"]],
        shares.tidy().loc[1, ["estimate", "conf_low", "conf_high"]],
        check_names=False,
    )
    with pytest.raises(FormulaError, match="is not a number of the synthetic table"):
        syn.quantile("~ sex")
    with pytest.raises(FormulaError, match="'age ~ sex' has a left side"):
        syn.table("age ~ sex")


def test_a_table_too_wide_is_refused_before_its_pairs_are_listed():
    book = dp.codebook(**{f"x{i}": ["a", "b"] for i in range(500)})
    layout, _ = cut_columns("~ x0 + x1 + x2", book, 10)
    wide = replace(layout, factors=layout.factors * 1_000)
    tracemalloc.start()
    try:
        with pytest.raises(FormulaError, match="the 4,498,500 tables"):
            all_pairs(wide)
        with pytest.raises(FormulaError, match="'age' has 900,000 levels"):
            cut_columns("~ age + sex", BOOK, 900_000)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert all_pairs(layout) == ((0, 1), (0, 2), (1, 2))


@pytest.mark.parametrize("cuts", [True, 1, {"age": [0, 90]}, {"age": [0, 40, 90]}, {"day": [1]}])
def test_errors_of_cells_name_cuts(cuts):
    with pytest.raises(ArgumentError, match=r"^cuts=") as error:
        cut_columns("~ age + day", BOOK, cuts)
    assert "breaks" not in str(error.value)


@pytest.mark.guarding
@pytest.mark.parametrize(
    "estimate",
    [
        lambda syn: syn.lm("age ~ wage"),
        lambda syn: syn.glm("drug ~ wage"),
        lambda syn: syn.mean("wage ~ sex"),
        lambda syn: syn.quantile("wage ~ sex"),
    ],
)
def test_an_unknown_column_is_refused_by_the_columns_of_the_table(syn, estimate):
    with pytest.raises(FormulaError, match="synthetic table, which has age, children, ") as error:
        estimate(syn)
    assert "eclare" not in str(error.value)
    assert error.value.name == "wage"


def test_an_unknown_column_is_named_whatever_its_name(syn):
    name = "pay is not in the codebook"
    with pytest.raises(FormulaError, match=f"^'{name}' is not a column of the synthetic table"):
        syn.mean(f"Q('{name}') ~ sex")


def test_a_clique_above_the_limit_is_refused_before_a_row_is_read():
    book = dp.codebook(a=list(range(200)), b=list(range(200)), c=[0, 1])
    with pytest.raises(ArgumentError, match=r"table of 40,401 cells"):
        dp.dp_synth("~ .", {}, codebook=book, eps=1, delta=1e-6, structure="~ a:b")


def test_a_pure_guarantee_is_refused():
    with pytest.raises(dp.errors.BudgetError, match="delta"):
        dp.dp_synth("~ age + sex", ROWS, codebook=BOOK, eps=1.0)


# Intervals that cover 93 % of 300 numbers fail in one run of 10^6.
@pytest.mark.product
def test_intervals_cover_the_population():
    population = people(400_000, 7)
    middle = (np.floor(population["age"] / 10) * 10 + 5).clip(5, 75)
    design = np.column_stack(
        [np.ones(len(population)), population["sex"] == "M", population["drug"] == "yes"]
    ).astype(float)
    exact = np.linalg.lstsq(design, middle, rcond=None)[0]
    means = middle.groupby(population["sex"]).mean().to_numpy()
    missed = total = 0
    for seed in range(60):
        data = population.sample(N_ROWS, replace=True, random_state=seed)
        fit = synthetic(data=data, rho=0.05, seed=seed, cuts={"age": 8})
        for estimates, truth in (
            (fit.lm("age ~ sex + drug"), exact),
            (fit.mean("age ~ sex"), means),
        ):
            ends = estimates.conf_int().to_numpy()
            missed += int(((truth < ends[:, 0]) | (truth > ends[:, 1])).sum())
            total += len(truth)
    assert missed <= binom.isf(1e-6, total, 0.07)


def test_a_layout_keeps_the_variables_that_its_columns_read_and_no_other():
    """Also those within an expression: a variable that no column reads is not part of a request."""
    layout, columns = cut_columns("~ sex + cut(age, [0, 30, 80])", BOOK, 5)
    assert set(layout.codebook) == {"age", "sex"}
    assert [column.name for column in columns] == ["sex", "cut(age, [0, 30, 80])"]
    everything, _ = cut_columns("~ .", BOOK, 5)
    assert set(everything.codebook) == set(BOOK)


def test_columns_whose_names_are_quoted_have_estimates():
    book = dp.codebook({"size (cm)": (0, 100), "home town": ["a", "b"], "y": (0, 10)})
    rows = np.random.default_rng(3)
    data = {
        "size (cm)": rows.uniform(20, 80, 3_000),
        "home town": rows.choice(["a", "b"], 3_000),
        "y": rows.uniform(2, 8, 3_000),
    }
    with dp.simulation(seed=4):
        syn = dp.dp_synth("~ .", data, codebook=book, budget=dp.ZCDP(2.0))
    assert list(syn.lm("y ~ Q('size (cm)') + Q('home town')").params.index)[1:] == [
        'Q("home town")[T.b]',
        'Q("size (cm)")',
    ]
    assert len(syn.mean("Q('size (cm)') ~ Q('home town')").params) == 2
    assert len(syn.quantile("Q('size (cm)')").params) == 3
    assert abs(syn.table("~ Q('home town')").params.sum() - 1) < 1e-9
    with pytest.raises(FormulaError, match=re.escape("""'~ Q("size (cm)") + Q("home town")'""")):
        syn.table("~ town")


def test_a_regression_of_columns_without_complete_rows_is_not_available():
    data = {"empty": np.full(2_000, np.nan), "y": np.linspace(0, 10, 2_000)}
    with dp.simulation(seed=4):
        syn = dp.dp_synth(
            "~ .", data, codebook=dp.codebook(empty=(0, 1), y=(0, 10)), budget=dp.ZCDP(1.0)
        )
        with pytest.raises(NotAvailable, match="noise hides"):
            syn.lm("y ~ empty")


def test_means_and_quantiles_of_dates_are_printed_as_dates():
    syn = synthetic("~ day + sex", ROWS, cuts=4)
    means, quantiles = str(syn.mean("day ~ sex")), str(syn.quantile("day"))
    assert re.search(r"F +2020-0\d-\d\d +\d", means)
    assert re.search(r"0\.5 +2020-0\d-\d\d +\[2020-", quantiles)
    assert "std err" not in quantiles
