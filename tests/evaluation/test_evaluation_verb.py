"""Studies of counts and of rows: what is drawn, measured and refused."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from benchmarks.algorithms import LINE, PLANE
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.evaluation.histograms import coarsened
from dpmodels.evaluation.verb import _energy

SHAPES = {name: dp.shapes.standard(16)[name] for name in ("uniform", "spiky")}


def nothing(counts, eps):
    return 0.0 * counts


@pytest.fixture(scope="module")
def study():
    algorithms = {"nothing": nothing, "flat": partial(dp.dp_hist, "~ v")}
    return dp.evaluate(
        algorithms, SHAPES, scale=[100, 1e3], domain=[4, 16], eps=[0.5, 1], repeats=3
    )


@pytest.mark.product
def test_every_cell_is_there_once(study):
    assert dict(study.data["error"].sizes) == {"algorithm": 4, "cell": 16, "repeat": 3}
    wide = study.data.set_index(cell=["table", "scale", "domain", "eps"]).unstack("cell")
    assert wide["error"].sizes["table"] == 2
    assert not wide["error"].isnull().any()
    assert study.settings.baselines == ("identity", "uniform")


@pytest.mark.product
def test_an_answer_of_zeros_has_the_error_of_the_table(study):
    table = study.tidy()
    table = table[(table["algorithm"] == "nothing") & (table["table"] == "uniform")]
    sizes = table["domain"].astype(int)
    # Of prefixes of n even cells: root mean square of i/n over √n, about; sampling moves it.
    expected = np.sqrt([sum((i / n) ** 2 for i in range(1, n + 1)) for n in sizes]) / sizes
    np.testing.assert_allclose(table["mean"], expected, rtol=0.2)


@pytest.mark.expensive
def test_noise_on_every_cell_has_its_variance():
    result = dp.evaluate(
        {"none": nothing}, {"flat": np.ones(64)}, scale=1_000, eps=0.1, repeats=100
    ).data["error"]
    squares = (result.sel(algorithm="identity").isel(cell=0) * 64 * 1_000) ** 2
    variance = 0.5 / np.sinh(0.05) ** 2
    # Of 100 draws; a squared length has a standard deviation below 1.2 of itself: six of the mean.
    expected = variance * 64 * 65 / 2
    assert float(squares.mean()) == pytest.approx(expected, rel=6 * 1.2 / np.sqrt(100))


@pytest.mark.product
def test_the_same_seed_gives_the_same_study_and_another_does_not():
    algorithms = {"flat": partial(dp.dp_hist, "~ v")}
    first, same, second = (
        dp.evaluate(algorithms, SHAPES, scale=50, repeats=2, seed=seed).data["error"]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != second).any()


def test_the_printed_report_says_what_was_compared(study):
    printed = study.summary().as_text()
    for words in (
        "SIMULATION - NOT PRIVATE",
        "Neighbours: add or remove one row",
        "identity *",
        "3 in each of 16 cells",
        "biased: too few repeats",
        "no budget was charged",
    ):
        assert words in " ".join(printed.split())
    assert " of 16" in printed
    assert "<Study of 4 algorithms in 16 cells" in repr(study)


def test_errors_by_cell_are_printed_of_a_small_study():
    evaluation = dp.evaluate({"none": nothing}, SHAPES, scale=[100, 200], repeats=2, eps=1.0)
    assert "spiky, 200" in evaluation.summary().as_text()
    assert evaluation.table["algorithm"].tolist()[-1] in ("none", "uniform")
    assert evaluation.glance()["cells"].item() == 4
    with pytest.raises(NotAvailable):
        evaluation.save("study.nc")


def test_tidy_has_one_line_a_cell_and_algorithm(study):
    table = study.tidy()
    assert len(table) == 4 * 16
    assert not table.duplicated(["algorithm", "table", "scale", "domain", "eps"]).any()
    cell = study.cell(7)
    assert cell["algorithm"].tolist() == list(study.algorithms)
    assert cell[["table", "scale", "domain", "eps"]].drop_duplicates().shape[0] == 1


@pytest.mark.parametrize("error", ["prefix", "ranges", "random", "identity", "marginals"])
def test_tables_of_two_axes(error):
    tables = {"smooth": dp.shapes.standard((8, 4))["smooth"]}
    evaluation = dp.evaluate(PLANE, tables, scale=500, domain=[(8, 2), 2], repeats=2, error=error)
    assert evaluation.data["domain"].to_numpy().tolist() == ["8 x 2", "2 x 2"]
    assert (evaluation.data["error"].sel(algorithm=["quadtree", "ugrid"]) > 0).all()


@pytest.mark.product
def test_published_algorithms_do_what_was_found_of_them():
    """Ten queries never give a table; a tree is measured by all of its nodes."""
    tables = {name: dp.shapes.standard(64)[name] for name in ("smooth", "bimodal")}
    evaluation = dp.evaluate(LINE, tables, scale=[1e5], eps=0.1, repeats=4)
    table = evaluation.table.set_index("algorithm")
    assert not table.loc["mwem", "consistent"]
    assert table.loc[["greedyh", "ahp", "efpa"], "consistent"].all()
    assert table.loc["greedyh", "regret"] < table.loc["mwem", "regret"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ({"tables": {}}, "expected a mapping from names to public histograms"),
        ({"tables": {"": [1, 1]}}, "the name '' is not a nonempty string"),
        ({"tables": {"x": [1, -1]}}, "finite nonnegative counts"),
        ({"tables": {"x": [1, np.nan]}}, "finite"),
        ({"tables": {"x": [0, 0]}}, "not all 0"),
        ({"tables": {"x": [1]}}, "at least two cells along each axis"),
        ({"tables": {"x": "abc"}}, "at least two cells along each axis"),
        ({"tables": {"x": {"v": [1, 2]}}}, "at least two cells along each axis"),
        ({"scale": 0}, "scale=0: expected a whole number from 1"),
        ({"scale": 2.5}, "scale=2.5: expected a whole number"),
        ({"scale": []}, "scale is empty"),
        ({"domain": 3}, "domain=3: .* divisors of 16"),
        ({"domain": (4, 4)}, "divisors of 16"),
        ({"domain": "4"}, "divisors of 16"),
        ({"eps": 0}, "eps=0: expected a positive number"),
        ({"eps": [0.1, float("inf")]}, "eps=inf"),
        ({"error": "rmse"}, "error='rmse': expected \"prefix\""),
        ({"error": "marginals"}, 'write error="identity"'),
        ({"repeats": 1}, "repeats=1: expected a whole number from 2"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_bad_words_are_refused_before_anything_runs(words, reported):
    def ran(counts, eps):
        raise AssertionError

    words = {"tables": SHAPES} | words
    with pytest.raises(ArgumentError, match=reported):
        dp.evaluate({"ran": ran}, words.pop("tables"), **words)


def test_coarser_tables_have_the_same_rows():
    shape = np.random.default_rng(1).random((6, 4))
    np.testing.assert_allclose(coarsened(shape, (3, 2))[1, 0], shape[2:4, :2].sum())


ROWS = pd.DataFrame(
    np.random.default_rng(2).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 400),
    columns=["a", "b"],
).clip(-4, 4)
BOOK = dp.codebook(a=(-4, 4), b=(-4, 4))
TERMS = {"delta": 1e-6}


def line(rows):
    slope, level = np.polyfit(rows["b"], rows["a"], 1)
    return [level, slope]


@pytest.mark.product
@pytest.mark.parametrize(
    ("error", "verb", "truth"),
    [
        ("coefficients", partial(dp.dp_lm, "a ~ b", **TERMS), line),
        ("frobenius", partial(dp.dp_cov, "~ a + b", scale=None, **TERMS), lambda rows: rows.cov()),
        (
            "energy",
            partial(dp.dp_pca, "~ a + b", scale=None, ncomp=1, **TERMS),
            lambda rows: rows.cov(),
        ),
        ("coverage", partial(dp.dp_lm, "a ~ b", **TERMS), line),
    ],
)
def test_rows_and_the_answers_of_other_verbs(error, verb, truth):
    words = {"codebook": BOOK, "truth": truth, "scale": 4_000, "eps": [1.0, 1e4], "repeats": 4}
    evaluation = dp.evaluate({"verb": verb}, {"normal": ROWS}, error=error, **words)
    result = evaluation.data["error"].sel(algorithm="verb")
    assert float(result[1].mean()) < max(float(result[0].mean()) / 3, 1e-6)
    coverage = evaluation.data["coverage"].sel(algorithm="verb")
    assert coverage.isnull().all() == (error != "coverage")
    if error == "coverage":
        assert float(coverage[0].mean()) >= 0.5
        assert evaluation.settings.baselines == ()
    else:
        assert (
            float(evaluation.data["error"].sel(algorithm=evaluation.settings.baselines[0]).min())
            > result[0].mean()
        )
    assert "as each recipe says" in evaluation.summary().as_text()


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ({"tables": {"x": [1, 2]}}, "needs rows"),
        ({"tables": None}, "names to public or simulated data frames"),
        ({"codebook": None}, "expected the dp.codebook"),
        ({"truth": None}, "expected a function from a data frame"),
        ({"truth": lambda rows: [1.0, 2.0, 3.0]}, "must return the same numbers in the same order"),
    ],
)
def test_rows_that_cannot_be_compared_are_refused(words, reported):
    arguments = {"tables": {"x": ROWS}, "codebook": BOOK, "truth": line} | words
    recipe = {"lm": partial(dp.dp_lm, "a ~ b", **TERMS)}
    with pytest.raises(ArgumentError, match=reported):
        dp.evaluate(
            recipe, arguments.pop("tables"), error="coefficients", repeats=2, scale=99, **arguments
        )


@pytest.mark.slow
def test_flat_counts_have_the_known_errors_of_public_tables(local_data):
    """Root mean squares of prefix errors over 4,096 cells, by the variance of the noise."""
    with np.load(local_data / "dpbench_1d.npz") as archive:
        tables = {name: archive[name] for name in archive.files}
    flat = {"flat": partial(dp.dp_hist, "~ v")}
    evaluation = dp.evaluate(flat, tables, scale=[1e3, 1e5], eps=0.1, repeats=20)
    squares = (evaluation.data["error"].sel(algorithm="flat") ** 2).mean("repeat")
    expected = 0.5 / np.sinh(0.05) ** 2 * 4097 / (2 * 4096) / evaluation.data["scale"] ** 2
    # Of 20 draws; the squared length has a standard deviation of 1.2 of itself: six of the mean.
    assert (abs(squares / expected - 1) < 6 * 1.2 / np.sqrt(20)).all()
    published = {"ADULTFRANK": 8.6e-3, "HEPTH": 2.7e-3, "INCOME": 8.6e-3}
    means = evaluation.tidy().query("algorithm == 'uniform' and scale == 100000").set_index("table")
    for name, error in published.items():
        assert means.loc[name, "mean"] == pytest.approx(error, rel=0.02)


def test_directions_lose_the_variance_that_they_do_not_explain():
    """As a fraction of what the best directions explain; a basis need not be orthonormal."""
    truth = np.diag([3.0, 2.0, 1.0])
    for columns, loss in (([0, 1], 0.0), ([0, 2], 0.2), ([1, 2], 0.4), ([2], 2 / 3)):
        answer = 5 * np.eye(3)[:, columns] @ np.triu(np.ones((len(columns),) * 2))
        assert _energy(answer, truth).error == pytest.approx(loss)
