"""What statistics must share if they are to be added, and the message where they do not."""

import json

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.design.rows import requested_of
from dpmodels.errors import ArgumentError
from dpmodels.formula.sides import grouping, measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import adjacency
from dpmodels.statistics import Passes, Statistic, clipped_moments, moments
from dpmodels.statistics.counts import counts
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Huber, Logistic, Predictors
from dpmodels.statistics.statistic import Fingerprint
from tests.private_rows import private_cells, private_regression

BOOK = dp.codebook(age=(0, 100), sex=["F", "M"], w=(0, 3))
OTHER = {
    "narrower": dp.codebook(age=(0, 90), sex=["F", "M"], w=(0, 3)),
    "labelled": dp.codebook(age=dp.Numeric(0, 100, label="years"), sex=["F", "M"], w=(0, 3)),
    "levels": dp.codebook(age=(0, 100), sex=["M", "F"], w=(0, 3)),
}
ROWS = {"age": [3.0, 93.0], "sex": ["F", "M"], "w": [1.0, 2.0]}
SECRET = 918_273


def summed(formula="~ age + sex", book=BOOK, bits=20, columns=2, relation="replace", **words):
    unbound = private_design(formula, ROWS, book, **words).among(
        lambda terms: requested_of(terms, adjacency(relation), None)
    )
    design = unbound.bind(ROWS)
    return moments(design, Lattice(bits, columns))


def clipped(halvings):
    design = private_design("~ age + sex", ROWS, BOOK)
    return clipped_moments(design, Lattice(20, 2), halvings)


def counted(formula="~ sex", book=BOOK, whole=1, degree=0):
    pair = parse_sides(formula, book)
    if degree:
        tally = Tally(pair.groups, measured(pair.described[0]), degree)
    else:
        tally = Tally(tuple(map(grouping, pair.described)))
    return counts(private_cells(pair.text, ROWS, pair.codebook, (tally,)), whole)


def weighted(weights):
    design = private_regression("age ~ sex", ROWS, BOOK, weights=weights)
    return moments(design, Lattice(20, 2))


def passes(bits=20, formula="~ age + sex"):
    return Passes((private_design(formula, ROWS, BOOK),), Lattice(bits, 2))


def gradients(loss=None, bits=20):
    design = private_regression("sex ~ age", ROWS, BOOK)
    predictors = Predictors(terms=1, intercept=True, radius=0.7, middle=0.5, reach=1.0)
    return Gradients((design,), predictors, loss or Logistic(), Lattice(bits, 2))


def gradient(parameter, bits=20):
    return gradients().gradient(np.array(parameter), Lattice(bits, 2))


PAIRS = {
    "formula": (summed(), summed("~ sex + age"), "formula is ~ age"),
    "bounds": (summed(), summed(book=OTHER["narrower"]), "'age' is 0.0 to 100.0 for one and 0.0"),
    "levels": (summed(), summed(book=OTHER["levels"]), r"'sex' is \['F', 'M'\] for one"),
    "centre": (summed(), summed(center=False), "scaling of 'sex"),
    "scale": (summed(), summed(scale=None), "scaling of '"),
    "row norm": (summed(), summed(row_norm=1.0), "row_norm is"),
    "lattice": (summed(), summed(bits=18), "lattice is .*bits=20.*bits=18"),
    "adjacency": (
        summed(),
        summed(relation="add-remove"),
        "adjacency is replace one row, n public for",
    ),
    "weights": (weighted("w"), weighted(None), "one states"),
    "halvings": (clipped(3), clipped(4), "halvings is 3 for one and 4"),
    "kind": (clipped(3), summed(), "clipped moments and augmented moments do not add"),
    "table": (counted(), counted(book=OTHER["levels"]), "variable 'sex' is"),
    "units": (counted(), counted(whole=8), "units of a row is 1 for one and 8"),
    "measured": (counted("age ~ sex", degree=2), counted("age ~ sex", degree=4), "powers to 2 for"),
    "passes": (passes(), passes(19), "lattice is"),
    "transform": (passes().within(np.eye(2)), passes().within(2 * np.eye(2)), "transform is"),
    "loss": (gradients(), gradients(Huber(1.0)), r"loss is Logistic\(\) for one and Huber\("),
    "parameter": (gradient([0.0, 0.0]), gradient([0.0, 0.5]), "parameter is"),
    "rounding": (gradient([0.0, 0.0]), gradient([0.0, 0.0], 18), "rounded to is"),
}


@pytest.mark.parametrize(("first", "second", "says"), PAIRS.values(), ids=list(PAIRS))
def test_what_does_not_belong_together_is_refused(first, second, says):
    with pytest.raises(ArgumentError, match=says):
        first + second
    with pytest.raises(ArgumentError, match=r"do not (belong together|add)"):
        second + first


@pytest.mark.parametrize(("first", "second", "says"), PAIRS.values(), ids=list(PAIRS))
def test_the_same_adds_to_itself(first, second, says):
    assert (first + first).fingerprint == first.fingerprint != second.fingerprint
    assert (first + first + first).fingerprint.digest == first.fingerprint.digest


def test_facts_are_stated_once_and_only_where_statistics_are_added():
    stated = []

    def basis():
        stated.append(1)
        return Fingerprint((("formula", "~ a"),))

    exact = np.array([1], dtype=object)
    first, second = (Statistic("sum", exact, 3, basis) for _ in range(2))
    assert first.cross()[1] == 3
    assert not stated
    both = first + second
    assert both.cross()[1] == 6
    assert both.fingerprint == first.fingerprint == second.fingerprint
    assert len(stated) == 2


def test_labels_make_no_difference():
    assert (summed() + summed(book=OTHER["labelled"])).cross()[1] == 4


def test_shapes_are_compared_where_nothing_is_stated():
    with pytest.raises(ArgumentError, match=r"shapes \(2,\) and \(3,\)"):
        Statistic("sum", np.zeros(2, object), 0) + Statistic("sum", np.zeros(3, object), 0)


def test_no_fact_comes_from_a_row():
    options = {"age": [float(SECRET)] * 7, "sex": ["F"] * 7, "w": [1.0] * 7}
    design = private_design("~ age + sex", options, BOOK)
    statistic = moments(design, Lattice(20, 2))
    assert statistic.fingerprint == summed().fingerprint
    assert str(SECRET) not in json.dumps(statistic.fingerprint.facts)


def test_long_facts_are_cut_to_where_they_differ():
    fingerprint = Fingerprint((("formula", "~ a" + " + b" * 500 + " + c"),))
    second = Fingerprint((("formula", "~ a" + " + b" * 500 + " + d"),))
    assert "+ c for one" in fingerprint.difference(second)
    assert len(fingerprint.difference(second)) < 300
    assert fingerprint.difference(fingerprint) == ""
