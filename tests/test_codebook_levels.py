"""Levels that can be told apart, and texts that can be written."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError
from dpmodels.frames import to_codes


@pytest.mark.parametrize(
    "levels",
    [
        [2**53, 2**53 + 1],
        [float(2**53), 2**53 + 1],
        ["a", 2**53 + 1],
        ["a", -(2**64) - 1],
        ["a", 10**400],
        [str(2**53), str(2**53 + 1)],
        [f"{2**53}.0", 2**53],
        [1, "01"],
        [1.0, "1"],
        [True, "1"],
        [0.5, "0.50"],
    ],
    ids=repr,
)
def test_levels_that_are_one_number_are_refused(levels):
    with pytest.raises(CodebookError, match="double precision"):
        dp.codebook(x=levels)


@pytest.mark.parametrize(
    "levels",
    [
        [2**53, 2**53 + 2],
        [2**53 - 1, 2**53],
        ["1", "01"],
        ["1", "1.0"],
        [str(2**63), "a"],
        [0.1, "a"],
    ],
    ids=repr,
)
def test_levels_that_software_keeps_apart_each_have_their_code(levels):
    declared = dp.codebook(x=levels)["x"]
    cells = np.array(levels, object)
    assert to_codes(cells, declared.levels).tolist() == [0, 1]


HALF = "\ud800"


@pytest.mark.parametrize(
    "declare",
    [
        lambda: dp.codebook({HALF: (0, 1)}),
        lambda: dp.codebook(x=["F", f"M{HALF}"]),
        lambda: dp.codebook(x=dp.Categorical(["F", "M"], label=HALF)),
        lambda: dp.codebook(x=dp.Numeric(0, 1, label=HALF)),
        lambda: dp.codebook(x=dp.Numeric(0, 1, unit=HALF)),
    ],
    ids=["name", "level", "label", "label of a number", "unit"],
)
def test_half_a_character_is_refused(declare):
    with pytest.raises(CodebookError, match="half a surrogate pair") as caught:
        declare()
    str(caught.value).encode()


def test_half_a_character_in_a_file_is_refused(tmp_path):
    (tmp_path / "cb.json").write_text('{"x": {"levels": ["F", "\\udfff"]}}')
    with pytest.raises(CodebookError, match="half a surrogate pair"):
        dp.codebook.load(tmp_path / "cb.json")


def test_a_dict_gives_levels_their_labels():
    codebook = dp.codebook(educ={1: "low", 2: "high"})
    assert codebook["educ"] == dp.Categorical({1: "low", 2: "high"})
    for entry in ({"type": "boolean", "label": "smokes"}, {1: 2, 2: 3}):
        with pytest.raises(CodebookError, match="'educ' is declared as"):
            dp.codebook(educ=entry)


@pytest.mark.parametrize(
    ("bounds", "instead"),
    [(("2001", "2002"), '"2001-01-01", "2020-12-31"'), (("F", "M"), 'list, ["low", "high"]')],
)
def test_a_text_for_a_bound_is_told_of_days_and_levels(bounds, instead):
    with pytest.raises(CodebookError) as caught:
        dp.codebook(own=bounds)
    assert instead in str(caught.value)


def test_levels_in_a_text_are_refused_with_levels_as_the_example():
    with pytest.raises(CodebookError, match=r'such as \["low", "high"\]'):
        dp.codebook(x=dp.Categorical("abc"))
