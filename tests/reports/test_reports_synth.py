"""Notes and rows of printed synthetic tables and of estimates from them: each branch as read."""

import math
from types import SimpleNamespace as Fit

import pytest

from dpmodels.report.layout import WIDTH, wrap
from dpmodels.reports import synth

PAIRS = {(0, 1): 4, (0, 2): 4, (1, 2): 4}
SINGLES = {(0,): 2, (1,): 2, (2,): 2}
TRIPLE = {(0, 1, 2): 8}
NO_EDGE = "Noise hides the dependence of all pairs: all columns are independent."


def fitted(edges=((0, 1),), tables=(), expected=(0.01, 0.02, 0.03), independent=(0.01, 0.1, 0.2)):
    """Three columns, the released tables and the edges of the graph."""
    released = Fit(tables=tables, pairs=[term for term in tables if len(term) == 2])
    return Fit(
        source=Fit(released=released, tree=Fit(edges=edges)),
        expected_errors=Fit(expected=expected, independent=independent),
        request=None,
    )


@pytest.mark.parametrize(
    ("fit", "notes"),
    [
        (
            fitted((), SINGLES),
            ("No table of two columns was released: all columns are independent.",),
        ),
        (fitted((), SINGLES | PAIRS), (NO_EDGE, synth.INSTEAD)),
        (
            fitted(tables=PAIRS, expected=(0.01, 0.0985, 0.3)),
            (
                "The graph gains less than its noise costs: the expected error of two-column "
                "tables is 0.099, of independent columns 0.100.",
                synth.INSTEAD,
            ),
        ),
        # A gain of more than 2 % is one.
        (fitted(tables=PAIRS, expected=(0.01, 0.0975, 0.3)), ()),
    ],
)
def test_a_reader_learns_where_the_graph_gains_nothing(fit, notes):
    assert synth._noise_wins(fit) == notes
    assert all(len(wrap(note, WIDTH, indent=2)) <= 2 for note in notes)


@pytest.mark.parametrize(
    ("edges", "tables", "outside", "note"),
    [
        ((), PAIRS, 3, "Modelled as conditionally independent: 3 pairs; test() checks them."),
        (
            ((0, 1), (1, 2)),
            PAIRS,
            1,
            "Modelled as conditionally independent: 1 pair; test() checks them.",
        ),
        (
            ((0, 1),),
            {(0, 1): 4},
            2,
            "Modelled as conditionally independent: 2 pairs; 2 were not measured.",
        ),
        (
            ((0, 1),),
            {(0, 1): 4, (1, 2): 4},
            2,
            "Modelled as conditionally independent: 2 pairs; 1 was not measured.",
        ),
        (
            tuple(PAIRS),
            SINGLES | PAIRS,
            0,
            "All pairs are edges; no table of three columns was measured.",
        ),
        (tuple(PAIRS), PAIRS | TRIPLE, 0, "All pairs are edges."),
    ],
)
def test_a_reader_learns_which_pairs_are_modelled_and_which_measured(edges, tables, outside, note):
    assert synth._unmeasured(fitted(edges, tables), outside) == (note,)


@pytest.mark.parametrize(
    ("request_", "notes"),
    [
        (None, ()),
        (Fit(parent=None), ()),
        (
            Fit(parent="synth"),
            ("Computed from an earlier release; nothing further was charged.",),
        ),
    ],
)
def test_a_table_of_an_earlier_release_costs_nothing_further(request_, notes):
    fit = fitted()
    fit.request = request_
    assert synth._earlier(fit) == notes


def line(**fields):
    numbers = {
        "estimate": 12.3456,
        "std_error": 0.5,
        "noise_sd": 0.3,
        "statistic": 24.691,
        "p_value": 0.0123,
        "noise_low": 11.7,
        "noise_high": 12.9,
        "conf_low": 11.3,
        "conf_high": 13.3,
    }
    return numbers | fields


@pytest.mark.parametrize(
    ("fields", "tested", "cells"),
    [
        (
            {},
            True,
            ("12.35", "0.50", "0.30", "24.69", "0.0123", "[11.7, 12.9]", "[11.3, 13.3]"),
        ),
        ({}, False, ("12.35", "0.50", "0.30", "[11.7, 12.9]", "[11.3, 13.3]")),
        # Without a standard error, digits follow from the interval: 4 sds of .5.
        (
            {"std_error": math.nan, "noise_sd": math.nan},
            False,
            ("12.35", "", "", "[11.7, 12.9]", "[11.3, 13.3]"),
        ),
        ({"estimate": math.nan}, True, ("not identified", *[""] * 6)),
        ({"estimate": math.nan}, False, ("not identified", *[""] * 4)),
    ],
)
def test_an_estimate_has_the_digits_that_its_error_leaves(fields, tested, cells):
    printed = synth._numbers(
        line(**fields), Fit(is_regression=tested, distributions=(), date=False)
    )
    assert tuple(cell.strip() for cell in printed) == cells


def test_margins_that_the_table_has_too_few_columns_for_are_left_out():
    section = synth._errors(fitted(expected=(0.012, 0.034, math.nan)))
    assert [(row.label, row.cells) for row in section.rows] == [
        ("one column", ("0.012", "0.010")),
        ("two columns", ("0.034", "0.100")),
    ]


def test_the_largest_clique_is_the_one_of_most_cells():
    fit = fitted()
    fit.source.sizes = (30, 50, 4, 3)
    fit.source.tree.cliques = ((1, 2, 3), (0, 1), (2, 3))
    assert synth._largest(fit) == "1,500 cells, columns: 2"
