"""Parts of persons: against plain loops, and what all rows of one of them can change."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.cells import unbound_cells
from dpmodels.design.rows import requested_of
from dpmodels.formula.sides import grouping, measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.frames.persons import Numbering
from dpmodels.inference.means import GroupMoments
from dpmodels.inference.proportions import Noise
from dpmodels.privacy import Adjacency
from dpmodels.statistics.counts import counts
from dpmodels.statistics.shares import shares

BOOK = dp.codebook(g=["u", "v", "w"], y=(-2, 6))
WHOLE = 2**30
MEAN = Adjacency("replace", "mean", "id")
THREE = Adjacency("replace", 3, "id")
FEWER = Adjacency("add-remove", "mean", "id")
# Of a number of which 2**30 steps are its range, and of parts that are rounded down.
NEAR = 40


def table(neighbours, *, grouped=True, degree=2):
    g, y = (parse_sides(f"~ {name}", BOOK).described[0] for name in ("g", "y"))
    factors = (grouping(g),) if grouped else ()
    clustered = degree == 2 and (grouped or not neighbours.counts_persons)
    return Tally(factors, measured(y), degree, clustered)


def counted(data, neighbours, *, grouped=True, whole=WHOLE, degree=2):
    unbound = unbound_cells("y ~ g", BOOK, (table(neighbours, grouped=grouped, degree=degree),))
    design = unbound.among(lambda terms: requested_of(terms, neighbours, None))
    return counts(design.bind(data), whole).cross()


def panel(persons, seed, most=3):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(persons), rng.integers(1, most + 1, persons))
    rows = {
        "id": ids,
        "g": rng.choice(["u", "v", "w", "elsewhere"], len(ids), p=[0.4, 0.3, 0.2, 0.1]),
        "y": rng.uniform(-3, 7, len(ids)),
    }
    rows["y"][::7] = np.nan
    return rows


def by_loops(data, neighbours):
    """The parts in units of persons, as the docstring of the module states them."""
    counts = np.zeros((3, 5))
    ids, g, y = (np.asarray(data[name]) for name in ("id", "g", "y"))
    complete = np.isin(g, ["u", "v", "w"]) & ~np.isnan(y)
    t = np.clip((y + 2) / 8, 0, 1)
    for person in np.unique(ids):
        is_of_person = complete & (ids == person)
        among = is_of_person.sum() if neighbours.counts_persons else neighbours.places
        for cell, level in enumerate(["u", "v", "w"]):
            is_of_group = is_of_person & (g == level)
            if is_of_group.any():
                c, m = is_of_group.sum() / among, t[is_of_group].mean()
                parts = [c * (1 - m) ** 2, 2 * c * m * (1 - m), c * m**2]
                counts[cell] += c * np.array([*parts, (1 - c) * (1 - m), (1 - c) * m])
    return counts


@pytest.mark.parametrize("neighbours", [MEAN, THREE, FEWER])
def test_parts_are_those_of_plain_loops(neighbours):
    data = panel(60, 1)
    exact, rows = counted(data, neighbours)
    unit = WHOLE * neighbours.places
    shares = (exact[:-1].reshape(3, 5) / unit).astype(float)
    assert shares == pytest.approx(by_loops(data, neighbours), abs=1e-6)
    assert sum(exact) == rows * WHOLE
    assert rows == 60 * neighbours.places or not neighbours.n_public


def test_parts_do_not_depend_on_the_order_or_the_chunks_of_rows(tmp_path):
    data = panel(500, 2, most=9)
    order = np.random.default_rng(3).permutation(len(data["y"]))
    mixed = {name: values[order] for name, values in data.items()}
    assert counted(data, MEAN)[0].tolist() == counted(mixed, MEAN)[0].tolist()


@pytest.mark.product
@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize("neighbours", [MEAN, THREE, FEWER, Adjacency("add-remove", 3, "id")])
def test_all_rows_of_one_person_move_the_parts_by_those_of_one_row(neighbours, degree):
    """Brute force: a person with no, few or many rows anywhere instead of another, or of none."""
    rng = np.random.default_rng(4)
    rest, unit = panel(12, 5), WHOLE * neighbours.places
    changed = 2 if neighbours.n_public else 1
    for _ in range(40):
        tables = []
        for side in range(2):
            size = 0 if side and not neighbours.n_public else int(rng.integers(1, 90))
            columns = {
                "id": np.full(size, 99),
                "g": rng.choice(["u", "v", "w", "x"], size, p=rng.dirichlet([0.3] * 4)),
                "y": rng.choice([-2.0, 6.0, np.nan, rng.uniform(-2, 6)], size),
            }
            tables.append({name: np.concatenate([rest[name], columns[name]]) for name in rest})
        first, second = (counted(data, neighbours, degree=degree)[0] for data in tables)
        moves = [int(step) for step in first - second]
        assert sum(map(abs, moves)) <= changed * unit
        assert sum(step**2 for step in moves) <= changed * unit**2


def test_variances_are_between_persons_weighted_by_their_share_of_a_group():
    """Negligible noise: of persons' means, as dp_mean has them, with and without groups."""
    data = {**panel(300, 8), "y": np.random.default_rng(9).uniform(-2, 6, len(panel(300, 8)["y"]))}
    words = {"codebook": BOOK, "person": "id", "eps": 1e6, "mechanism": "geometric"}
    complete = np.isin(data["g"], ["u", "v", "w"])
    ids, y = data["id"], data["y"]
    means = np.array([y[ids == person].mean() for person in np.unique(ids)])
    fit, mean = dp.dp_var("~ y", data, **words), dp.dp_mean("~ y", data, **words)
    assert fit.params.item() == pytest.approx(means.var(ddof=1), rel=1e-4)
    assert fit.params.item() == pytest.approx(mean.sd.item() ** 2, rel=1e-4)
    grouped = dp.dp_var("y ~ g", data, **words)
    for level in ("u", "v", "w"):
        is_of_group = complete & (data["g"] == level)
        persons = np.unique(ids[is_of_group])
        weights = np.array(
            [(is_of_group & (ids == p)).sum() / (complete & (ids == p)).sum() for p in persons]
        )
        person_means = np.array([y[is_of_group & (ids == p)].mean() for p in persons])
        centre = np.average(person_means, weights=weights)
        variance = np.average((person_means - centre) ** 2, weights=weights)
        n_persons = weights.sum()
        expected = variance * n_persons / (n_persons - 1)
        assert grouped.params[level] == pytest.approx(expected, rel=1e-3)


def test_rows_of_persons_with_one_each_are_the_rows():
    rng = np.random.default_rng(6)
    data = {"id": np.arange(200), "g": rng.choice(["u", "v"], 200), "y": rng.uniform(-2, 6, 200)}
    exact, _ = counted(data, MEAN, grouped=False)
    plain = shares((data["y"] + 2) / 8, 2, WHOLE * 60).sum(axis=1)
    assert len(exact) == 4
    # Places are rounded to 2**-30, parts are in units of 60 * 2**30: 200 roundings of both.
    assert [int(value) for value in exact[:3]] == pytest.approx(plain.tolist(), abs=200 * 130)
    several, _ = counted(data, MEAN)
    assert several[:-1].reshape(3, 5)[:, 3:].tolist() == [[0, 0]] * 3


def test_persons_in_groups_are_found_in_a_few_steps(monkeypatch):
    """Where keys of persons and cells share one slot, time grows as the square of the rows."""
    steps, numbers_at = [], Numbering._numbers_at
    monkeypatch.setattr(
        Numbering, "_numbers_at", lambda *args: steps.append(0) or numbers_at(*args)
    )
    people = np.arange(3_000)
    counted({"id": people, "g": ["u", "v", "w"] * 1_000, "y": people % 5}, MEAN)
    assert 0 < len(steps) < 100


def test_units_of_many_places_are_not_lost():
    """Products of 2**56 units with numbers of rows leave 64 bits; none is made or lost."""
    neighbours_of_many = Adjacency("replace", 2**16, "id")
    rows = 999
    data = {"id": np.zeros(rows), "g": ["u"] * 333 + ["v"] * 666, "y": np.full(rows, 1.0)}
    exact, n_rows = counted(data, neighbours_of_many, whole=2**40)
    assert (n_rows, sum(exact)) == (2**16, 2**56)
    # 333 places of 2**40 units in the first cell; the mean of its numbers is 3/8.
    assert sum(exact[:5]) == 333 * 2**40
    share = Fraction(333, 2**16)
    assert abs(exact[2] - floor(333 * 2**40 * share * Fraction(9, 64))) < NEAR


@pytest.mark.parametrize("neighbours", [MEAN, THREE])
def test_the_sampling_error_of_a_mean_is_that_of_persons(neighbours):
    """The sandwich of a ratio of sums over persons, as every textbook of surveys has it."""
    data = panel(400, 7)
    exact, _ = counted(data, neighbours)
    parts = exact[:-1].reshape(3, 5).astype(float) / (WHOLE * neighbours.places)
    moments = GroupMoments(parts, Noise("laplace", 1e-12, 0), clustered=True)
    ids, g, y = (np.asarray(data[name]) for name in ("id", "g", "y"))
    complete = np.isin(g, ["u", "v", "w"]) & ~np.isnan(y)
    t = np.clip((y + 2) / 8, 0, 1)
    n_records = np.bincount(ids[complete], minlength=400)
    weight = complete / (np.maximum(n_records, 1)[ids] if neighbours.counts_persons else 3)
    for cell, level in enumerate(["u", "v", "w"]):
        group_weight = weight * (g == level)
        c, s = (
            np.bincount(ids, group_weight),
            np.bincount(ids, np.where(group_weight > 0, group_weight * t, 0)),
        )
        mean = s.sum() / c.sum()
        error = np.sqrt(((s - mean * c) ** 2).sum()) / c.sum()
        persons = c.sum() ** 2 / (c**2).sum()
        assert moments.means[cell] == pytest.approx(mean, abs=1e-7)
        corrected = error * np.sqrt(persons / (persons - 1))
        assert moments.mean_sampling_sd[cell] == pytest.approx(corrected, rel=1e-5)
        assert moments.independent[cell] == pytest.approx(persons, rel=1e-5)


@pytest.mark.parametrize("grouped", [True, False])
def test_the_order_of_rows_and_how_they_are_read_change_nothing(grouped, monkeypatch):
    data = panel(300, 3)
    exact_counts = counted(data, MEAN, grouped=grouped)
    order = np.random.default_rng(0).permutation(len(data["id"]))
    reordered = {name: values[order] for name, values in data.items()}
    monkeypatch.setattr("dpmodels.design.rows.read_rows", lambda columns: 17)
    counts_reordered = counted(reordered, MEAN, grouped=grouped)
    assert (counts_reordered[0] == exact_counts[0]).all()
    assert counts_reordered[1] == exact_counts[1]
