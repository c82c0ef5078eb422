"""Curvature and squares of persons' gradients: both together move by a person as by one row."""

from itertools import combinations

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms import quantile_of_norms
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.protocol import passes
from dpmodels.mechanisms.quantile_of_norms import both_matrices, bought_scale
from dpmodels.models.glm import glm_spec
from dpmodels.noise import seeded
from dpmodels.request import requested
from dpmodels.statistics.gradient import Gradients

BOOKS = {
    "binomial": dp.codebook(y=["n", "y"], a=(-1, 1), b=(-1, 1)),
    "poisson": dp.codebook(y=(0, 4), a=(-1, 1), b=(-1, 1)),
    "multinomial": dp.codebook(y=["u", "v", "w"], a=(-1, 1), b=(-1, 1)),
}
MULTIPLIER = 50.0


def way_of(family, unit, relation):
    words = {"family": family, "inference": True, "clip": None, "scale": "range", "row_norm": None}
    words |= {"person": "id", "rows": unit}
    book = BOOKS[family]
    return glm_spec(requested("glm", "y ~ a + b", book, 1.0, 1e-6, None, relation, **words))


def persons(family):
    """Of one row, of rows that are alike, and of some that pull to both sides."""
    ends = [(-1.0, 1.0), (0.1, -1.0), (1.0, 1.0)]
    declared = BOOKS[family]["y"]
    labels = declared.levels if isinstance(declared, dp.Categorical) else [0.0, 1.0, 4.0]
    rows = [(label, *end) for label in labels for end in ends]
    return [[], *([row] * (1 + 2 * at) for at, row in enumerate(rows)), rows[::2], rows[3:5]]


def furthest(family, unit, relation, law):
    """How far persons are apart in both matrices, by their noise and what a person pays for it."""
    way = way_of(family, unit, relation)
    scale, places = bought_scale(way.facts, MULTIPLIER, law), way.facts.adjacency.places
    scores, distances = [], []

    def read(question, point, facts, scale, *_):
        lattice = quantile_of_norms.bought_lattice(facts, scale, law)
        scores.append(question(point, lattice).cross()[0].astype(float) / lattice.radius**2 / scale)
        return lambda entropy: (np.zeros((1, 1)), None)

    upper = np.triu_indices(way.facts.columns)
    lines = way.facts.lines
    # Of several levels the last is all but excluded on one side of a plane at the second point.
    signs = np.append(np.zeros(lines - 1), -3.0 if lines > 1 else 1.0)
    for point in (np.zeros(3 * lines), np.kron(signs, [0.5, 3.0, -2.0])):
        cells = []
        for table in persons(family):
            columns = dict(zip("yab", zip(*table, strict=True), strict=True)) if table else {}
            data = {name: list(columns.get(name, [])) for name in "yab"}
            rows = passes(way.private.bind({**data, "id": [3] * len(table)}), way.facts)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(quantile_of_norms, "requested_matrix", read)
                both_matrices(rows, point, way.facts, scale, seeded(1), law)
            cells.append(np.array([scores.pop(), scores.pop()]))
        pairs = combinations(cells, 2) if relation == "replace" else [(cell, 0) for cell in cells]
        for left, right in pairs:
            change = left - right
            absolute = np.abs(change[:, upper[0], upper[1]]).sum()
            distances.append(absolute if law is LAPLACE else np.sqrt((change**2).sum()))
    return max(distances) * MULTIPLIER / places


@pytest.mark.parametrize("unit", ["mean", 3])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("family", "law", "smallest"),
    [
        ("binomial", GAUSSIAN, 0.6),
        ("binomial", LAPLACE, 0.35),
        ("poisson", GAUSSIAN, 0.5),
        ("multinomial", GAUSSIAN, 0.7),
    ],
    ids=["logistic", "laplace", "poisson", "multinomial"],
)
def test_persons_are_within_the_sensitivity_of_both(family, law, smallest, unit, relation):
    assert smallest < furthest(family, unit, relation, law) <= 1


def test_squares_of_rows_with_the_noise_of_persons_show(monkeypatch):
    """The planted fault: gradients that are squared before they are summed."""
    monkeypatch.setattr(Gradients, "person_squares", lambda rows, *at, places: rows.squares(*at))
    assert furthest("binomial", 6, "replace", GAUSSIAN) > 2
