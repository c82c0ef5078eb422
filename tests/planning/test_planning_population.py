"""A table of rows that stand so often is the table written out."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.design.parts import Part
from dpmodels.noise import source
from dpmodels.planning.population import Population
from dpmodels.planning.power_simulation import Cell, PowerInputs
from dpmodels.planning.verbs import options_of, verb_with_power

BOOK = dp.codebook(wage=(0, 80), age=(18, 80), sex=["F", "M"], smoker=["no", "yes"])
CALLS = {
    "mean": ("wage ~ sex", 1.0),
    "ttest": ("wage ~ sex", 1.0),
    "table": ("~ sex + smoker", 0.1),
    "lm": ("wage ~ age + sex", {"age": 0.1}),
    "glm": ("smoker ~ age + sex", {"age": 0.01}),
}


def asking(verb, shape="normal", **words):
    options = {"delta": 0.0, "budget": None, "mechanism": "auto", "adjacency": None, "alpha": 0.05}
    formula = words.pop("formula", CALLS[verb][0])
    declared, power = verb_with_power(verb)
    power = power._replace(runs=words.pop("runs", power.runs))
    expected = {**options_of(declared), **words}
    return PowerInputs(declared, power, formula, BOOK, shape, options=expected, **options)


def written_out(rows):
    """The same rows, each as often as it occurs."""
    (part,) = rows.parts()
    columns = {name: np.repeat(column, part.places) for name, column in part.columns.items()}
    for name in ("sex", "smoker"):
        if name in columns:
            columns[name] = np.array(BOOK[name].levels)[columns[name].astype(int)]
    return pd.DataFrame(columns)


@pytest.mark.parametrize("verb", ["mean", "table", "lm"])
def test_exact_sums_are_those_of_the_table_written_out(verb):
    trial = asking(verb).trial(Cell(9_001, 1.0, CALLS[verb][1]))
    draws = trial.posed.population.sample(9_001, np.random.default_rng(5))
    strategy = trial.choice.strategy
    standing = strategy.measure(trial.spec.private.of(draws), trial.choice.plan)
    statistic = strategy.measure(trial.spec.private.bind(written_out(draws)), trial.choice.plan)
    exact, rows = standing.cross()
    assert rows == 9_001 == draws.nrows
    np.testing.assert_array_equal(exact, statistic.cross()[0])


def test_a_release_from_standing_rows_is_that_from_the_table_written_out():
    """The whole of a logistic regression: passes over the rows, noise and inference."""
    trial = asking("glm").trial(Cell(5_000, 3.0, CALLS["glm"][1]))
    draws = trial.posed.population.sample(5_000, np.random.default_rng(5))
    strategy, results = trial.choice.strategy, []
    for private in (trial.spec.private.of(draws), trial.spec.private.bind(written_out(draws))):
        with dp.simulation(seed=3):
            statistic = strategy.measure(private, trial.choice.plan)
            results.append(strategy.release(statistic, trial.choice.plan, source()).coefficients)
    # Minima of sums that are rounded otherwise, each to a declared tolerance.
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)


def test_rows_are_drawn_by_their_shares():
    population = asking("mean")._population
    two = population.among(np.array([0, 1]), np.array([0.25, 0.75]))
    (part,) = two.sample(100_000, np.random.default_rng(1)).parts()
    first = part.columns["wage"] == two.part.columns["wage"][0]
    # Binomial: five standard deviations, missed once in 10^6.
    assert abs(part.places[first].sum() - 25_000) < 5 * np.sqrt(100_000 * 0.1875)
    assert set(np.log2(part.places)) <= set(range(17))


def test_rows_of_a_subset_alone_are_drawn():
    trial = asking("mean", subset="age > 60").trial(Cell(500, 1.0, 1.0))
    assert (trial.posed.population.part.columns["age"] > 60).all()


def test_an_effect_on_steps_keeps_the_mean_of_each_row():
    """Rows at the two steps about a value, with the shares of a linear interpolation."""
    part = Part({"x": np.zeros(3)}, None, None)
    population = Population(part, np.array([0.5, 0.3, 0.2]), {})
    values = np.array([1.0, 1.4, 2.3])
    stepped, rows, on_steps = population.with_numbers("x", values, 1.0, 0.5)
    assert np.isin(on_steps, 1.0 + 0.5 * np.arange(4)).all()
    for row, (value, share) in enumerate(zip(values, population.shares, strict=True)):
        weights = stepped.shares[rows == row]
        assert weights.sum() == pytest.approx(share)
        assert weights @ on_steps[rows == row] == pytest.approx(share * value)
