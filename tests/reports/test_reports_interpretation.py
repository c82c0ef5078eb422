"""What is printed of columns of several results, of interpretations and of evaluations."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each

from dpmodels.evaluation import report
from dpmodels.privacy import ZCDP, Adjacency, GaussianEvent, LaplaceEvent, PureDP, PureEvent
from dpmodels.released import AnswersRelease
from dpmodels.reports import comparison, etable


def printed(notes, start):
    return sum(note.startswith(start) for note in notes)


def test_only_answers_without_noise_are_of_one_respondent():
    answers = AnswersRelease.__new__(AnswersRelease)
    for events, neighbours, law in (
        ((), "one respondent's answers", "randomised answers"),
        ((PureEvent(1.0),), "replace one row, n public", "of its own law"),
    ):
        object.__setattr__(answers, "events", events)
        object.__setattr__(answers, "adjacency", Adjacency("replace"))
        assert etable._neighbours(answers) == neighbours
        assert etable._law(answers) == law
    release = Fit(events=(), adjacency=Adjacency("add-remove"))
    assert etable._neighbours(release) == "add or remove one row"
    release.events = (GaussianEvent(1.0), LaplaceEvent(1.0), GaussianEvent(2.0))
    assert etable._law(release) == "Gaussian, Laplace"


def reading(*curves, lie=0.2, holds=1, odds=3.0, spent=False):
    line = {
        "units": 1,
        "protected": "one row",
        "power": 0.1,
        "advantage": 0.2,
        "odds": odds,
        "posterior": 0.6,
        "posterior_lower": 0.3,
        "lie": lie,
        "holds": holds,
    }
    return Fit(
        table=pd.DataFrame([line]),
        curves=curves or (PureDP(1.0),),
        alpha=0.05,
        prior=0.5,
        labels=("a",),
        spent=spent,
    )


def test_rows_of_an_interpretation_without_a_value_are_left_out():
    names = [row.label for row in comparison._section(reading(), 1).rows]
    assert names[0] == "Power at level 0.05"
    assert names[-1] == "Lying probability"
    assert len(names) == 6
    without = comparison._section(reading(lie=math.nan), 1)
    assert [row.label for row in without.rows] == names[:-1]
    assert without.title == "One row, at most"


def test_an_interpretation_marks_what_holds_with_exceptions():
    cells = comparison._cells(reading(holds=0, odds=math.inf).table.iloc[0].to_dict())
    assert cells[2:5] == ("no bound *", "0.600 *", "0.300 *")
    assert "*" not in "".join(comparison._cells(reading().table.iloc[0].to_dict()))


@pytest.mark.parametrize(
    ("result", "starts"),
    [
        (reading(), {"Lying probability: of a": 1, "* except": 0, "Gaussian": 0, "For this": 1}),
        (reading(ZCDP(0.1)), {"* except for outputs of probability at most 0.05": 1}),
        (reading(lie=math.nan), {"Lying probability": 0}),
        (reading(GaussianEvent(2.0)), {"Gaussian noise: bounds follow from": 1, "* except": 1}),
        (reading(spent=True), {"So far: if neither calls": 1, "For this release only": 0}),
    ],
)
def test_notes_of_an_interpretation(result, starts):
    notes = comparison._interpretation_notes(result)
    assert {start: printed(notes, start) for start in starts} == starts
    pure = all(isinstance(curve, PureDP) for curve in result.curves)
    lying = " ".join(note for note in notes if note.startswith("Lying"))
    assert ("except for delta" in lying) == (bool(lying) and not pure)


class Data(dict):
    """The arrays of a study, and how many cells it has."""

    def __init__(self, n_cells, **arrays):
        super().__init__(arrays)
        self.sizes = {"cell": n_cells}


@each("error, is_width", [("squared", 0), ("coverage", 1)])
def test_notes_of_an_evaluation(error, is_width):
    data = Data(2, bias_p=np.zeros(4))
    settings = Fit(error=error, repeats=100, baselines=("zero",))
    notes = report._notes(Fit(settings=settings, data=data))
    assert printed(notes, "Errors are widths.") == is_width
    assert printed(notes, "bias share: share of the squared error") == 1 - is_width
    assert printed(notes, "+ competitive in the cell.") == 1
    assert printed(notes, "* baseline.") == 1
    settings.baselines, data.sizes = (), {"cell": report._MOST_CELLS + 1}
    notes = report._notes(Fit(settings=settings, data=data))
    assert printed(notes, "+ competitive") == printed(notes, "* baseline.") == 0
    assert printed(notes, "Errors by cell: tidy().") == 1


def test_an_algorithms_line_stands_under_its_heads():
    line = {
        "algorithm": "a",
        "regret": 1.5,
        "regret_worst": 2.5,
        "competitive": 3,
        "cells": 4,
        "p95": 1.75,
        "bias": 0.25,
        "biased": 1,
        "coverage": 0.951,
        "consistent": False,
        "ratio_low": 0.9,
        "ratio_high": 130.0,
        "exchangeable": False,
    }
    table = pd.DataFrame([line])
    for error, cells in (
        ("squared", {"bias share": "25%", "biased in": "1 of 4"}),
        ("coverage", {"coverage": "0.951"}),
    ):
        section = report._overall(Fit(settings=Fit(error=error, baselines=("a",)), table=table))
        (row,) = section.rows
        assert row.label == "a *"
        assert dict(zip(section.columns, row.cells, strict=True)) == {
            "regret": "1.50",
            "worst": "2.50",
            "competitive": "3 of 4",
            "p95/mean": "1.75",
            **cells,
            "consistent": "NO",
            "same eps x scale": "[0.90, 130] NO",
        }
