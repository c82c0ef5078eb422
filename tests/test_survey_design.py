"""Designs as values: checked, in codebooks and drafts, and written as JSON."""

import pytest
from folded import each

import dpmodels as dp
from dpmodels.column_roles import SurveyDesign, as_design
from dpmodels.errors import ArgumentError, CodebookError
from dpmodels.formula.tally import STEPS, sampling_of

STATED = {"weights": "w", "bounds": (1, 50), "weights_are": "design"}
WHOLE = dp.design(**STATED, strata="h", psu="school", fpc={"n": 900, "s": 400})


def test_a_design_is_in_a_codebook_its_file_and_what_is_made_of_it(tmp_path):
    book = dp.codebook(y=(0, 1), h=["n", "s"], design=WHOLE)
    book.save(tmp_path / "book.json")
    assert dp.Codebook.load(tmp_path / "book.json") == book
    assert dp.codebook.draft(str(tmp_path / "book.json")).codebook() == book
    assert dp.codebook.draft(book).complete(y=(0, 2)).codebook().design == WHOLE
    assert book.select(["y"]).design == (book | {"x": (0, 1)}).design == WHOLE
    assert (dp.codebook(y=(0, 1)) | book).design == WHOLE
    assert "weights w (1 to 50), strata h, sampling units school" in str(book)
    assert hash(book) == hash(dp.codebook(dict(book), design=WHOLE.to_plain()))
    assert book != book.with_design(None)
    assert book.unit == "school"


def test_designs_of_two_codebooks_have_to_agree():
    left, right = (dp.codebook(y=(0, 1), design=dp.design(psu=psu)) for psu in ("a", "b"))
    with pytest.raises(CodebookError, match="different designs"):
        left | right


@each(
    "options, error, text",
    [
        ({}, ArgumentError, "names a column"),
        ({"weights": "w"}, ArgumentError, "calibrated, raked or trimmed"),
        ({"weights": "w", "weights_are": "calibrated"}, ArgumentError, "state"),
        ({**STATED, "weights": ["w", "rep1"]}, ArgumentError, "replicate weights"),
        ({**STATED, "bounds": (0, 50)}, ArgumentError, "0 < smallest"),
        ({**STATED, "bounds": (5, 2)}, ArgumentError, "0 < smallest"),
        ({**STATED, "bounds": 50}, ArgumentError, "smallest and largest"),
        ({"psu": "p", "bounds": (1, 5)}, ArgumentError, "not given"),
        ({**STATED, "strata": 3}, ArgumentError, "name of a column"),
        ({**STATED, "psu": "w"}, CodebookError, "different columns"),
        ({**STATED, "fpc": "size"}, ArgumentError, "not a column"),
        ({**STATED, "fpc": 0}, ArgumentError, "number of units"),
        ({**STATED, "fpc": {"n": 9}}, ArgumentError, "needs strata"),
    ],
)
def test_what_is_no_design_is_refused(options, error, text):
    with pytest.raises(error, match=text):
        dp.design(**options)


def test_other_types_and_keys_are_refused():
    with pytest.raises(ArgumentError, match="expected a design"):
        as_design("w")
    with pytest.raises(CodebookError, match="expected an object with"):
        SurveyDesign.from_plain({1: "w"})
    with pytest.raises(CodebookError, match=r"no parameter weight= \(did you mean 'weights'"):
        SurveyDesign.from_plain({"weight": "w"})
    plain = {"design": dp.design(psu="p").to_plain()}
    with pytest.raises(CodebookError, match="stated by two"):
        dp.Codebook.from_dict({"a": plain, "b": plain})


def test_rows_without_a_valid_weight_or_stratum_do_not_count():
    sampling = sampling_of(dp.codebook(h=["n", "s"], design=dp.design(**STATED, strata="h")))
    columns = {
        "w": [1.0, 50.0, 0.99, 50.01, -3.0, 0.0, float("nan"), float("inf"), 25.0],
        "h": [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, float("nan")],
    }
    weights = sampling.weights(columns, 9)
    assert weights.tolist() == [round(STEPS / 50), STEPS, 0, 0, 0, 0, 0, 0, 0]


def test_bounds_and_strata_come_from_the_codebook():
    design = dp.design(weights="w", strata="h", weights_are="design")
    assert sampling_of(dp.codebook(w=(1, 9), h=["n", "s"], design=design)).upper == 9
    with pytest.raises(CodebookError, match="have no bounds"):
        sampling_of(dp.codebook(h=["n", "s"], design=design))
    with pytest.raises(CodebookError, match="have no bounds"):
        sampling_of(dp.codebook(w=(0, 9), h=["n", "s"], design=design))
    with pytest.raises(CodebookError, match="not in the codebook"):
        sampling_of(dp.codebook(w=(1, 9), design=design))
    with pytest.raises(CodebookError, match="declare its levels"):
        sampling_of(dp.codebook(w=(1, 9), h=(0, 3), design=design))
    assert sampling_of(dp.codebook(w=(1, 9))) is None


@each("psu, advice", [(None, "rows=, or name the units by psu=$"), ("p", "person= and rows=$")])
def test_persons_beside_a_design_are_answered_with_its_unit(psu, advice):
    units = {} if psu is None else {"psu": psu}
    book = dp.codebook(y=(0, 1), w=(1, 50), design=dp.design(**STATED, **units))
    with pytest.raises(ArgumentError, match=f"so its unit of protection is the .*{advice}"):
        dp.dp_mean("y", {"y": [1.0], "w": [1.0]}, codebook=book, eps=1.0, person="id")
