"""The line of a report about its guarantee: off by default, true of what was released."""

from types import SimpleNamespace

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.privacy import PureEvent
from dpmodels.results.call import closest

ROWS = {"y": [1.0, 2.0, 3.0, 4.0] * 50, "g": ["u", "v"] * 100, "id": np.arange(200) // 4}
WORDS = {"codebook": dp.codebook(y=(0, 5), g=["u", "v"]), "eps": 1.0}
MARGINS = dp.codebook(g=["u", "v"], h=["p", "q"])


def line(fit):
    (note,) = (note for note in fit.summary(reading=True).report.notes if "Reading: " in note)
    return note.partition(" summary(notes=")[0]


def test_the_line_has_the_numbers_of_the_reading():
    fit = dp.dp_table("~ g", ROWS, **WORDS)
    read = dp.reading(fit).table.iloc[0]
    assert f"level 0.05 of whether one row contributed to it has power {read['power']:.3g}" in line(
        fit
    )
    assert (
        "power 0.136 at most, and a prior of 0.5 becomes 0.731 at most. Facts about the population"
        in line(fit)
    )
    assert not any(note.startswith("Reading:") for note in fit.summary().report.notes)


def test_gaussian_noise_is_read_by_its_own_curve():
    fit = dp.dp_table("~ g", ROWS, **WORDS, delta=1e-6, mechanism="gaussian")
    read = dp.reading(fit).table.iloc[1]
    assert f"has power {read['power']:.3g} at most" in line(fit)
    assert f"becomes {read['posterior']:.3g} at most with probability 0.95 or more" in line(fit)


def test_many_pure_releases_are_read_by_the_guarantee_that_they_compose_to():
    fit = SimpleNamespace(events=(PureEvent(0.05, 100),), guarantee=dp.ApproxDP(2.0, 1e-6))
    assert closest(fit) == dp.ApproxDP(2.0, 1e-6)
    fit.events = (PureEvent(0.05, 10),)
    assert closest(fit) == dp.PureDP(0.5)


def test_persons_and_respondents_are_named():
    persons = dp.dp_table("~ g", ROWS, **WORDS, person="id", rows=4)
    assert "whether one person (at most 4 rows) contributed to it" in line(persons)
    answers = dp.dp_table("~ g", ROWS, **WORDS, mechanism="randomized_response")
    assert "by these answers alone" in line(answers)
    assert "whether the truth of one respondent was one or another" in line(answers)


def test_what_is_not_private_and_what_no_row_had_a_part_in_say_so():
    with dp.simulation(seed=1):
        simulated = dp.dp_table("~ g", ROWS, **WORDS)
    assert line(simulated).startswith("Reading: none, as a simulation is not private")
    fit = dp.dp_pca("~ y", ROWS, **WORDS, mechanism="random")
    assert line(fit) == "Reading: no row contributed to it; a test at level 0.05 has power 0.05."
    assert "nothing here was computed from private rows" in line(dp.reading(eps=1.0))


def test_what_is_made_of_a_release_has_its_reading():
    margins = dp.dp_margins("~ g*h", {**ROWS, "h": ["p", "q"] * 100}, eps=1.0, codebook=MARGINS)
    assert line(margins.table("g", "h")) == line(margins)
    assert line(margins.loglin("~ g + h")) == line(margins)


def test_the_word_is_a_truth_value():
    with pytest.raises(ArgumentError, match="reading='yes': expected True or False"):
        dp.dp_table("~ g", ROWS, **WORDS).summary(reading="yes")
