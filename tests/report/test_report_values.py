import dataclasses

import pytest

from dpmodels.errors import ArgumentError
from dpmodels.report import Report, Row, Section


def test_a_row_needs_one_cell_a_column():
    with pytest.raises(ArgumentError, match=r"row 2 .* 1 cells for 2 columns"):
        Section("t", ("a", "b"), (Row("x", ("1", "2")), Row("y", ("1",))))


def test_values_are_frozen_and_compare_by_content():
    report, same = Report("t", (), (), ()), Report("t", (), (), ())
    assert report == same
    assert report.stamp is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.title = "u"
