"""Whole numbers, truths, labelled and ordered levels, and codes for missing values."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.codebook import Codebook
from dpmodels.design.columns import converted, declared_facts
from dpmodels.errors import ArgumentError, CodebookError
from dpmodels.variables import from_plain

BOOK = dp.codebook(
    visits=dp.Integer(0, 15, label="visits", unit="a year", missing=[-9, 7]),
    born=dp.Date("1900-01-01", "2010-12-31", label="birth", missing=["1901-01-01"]),
    smoker=dp.Boolean(label="ever smoked", missing=["?"]),
    educ=dp.Categorical({1: "low", 2: "high"}, ordered=True, missing=[9]),
    income=dp.Numeric(0, 1e6, missing=[99999998, "refused"]),
)


def column(declared, cells):
    values = converted(Codebook(x=declared), {"x": np.array(cells, dtype=object)})["x"]
    return [None if math.isnan(value) else value for value in values.tolist()]


def test_the_codebook_prints_kinds_labels_and_missing_codes():
    assert [" ".join(line.split()) for line in str(BOOK).splitlines()] == [
        "variable type declared unit label",
        "visits integer 0 to 15; missing: -9, 7 (in range) a year visits",
        "born date 1900-01-01 to 2010-12-31; missing: 1901-01-01 (in range) birth",
        "smoker boolean False | True; missing: ? ever smoked",
        "educ ordered 1 = low < 2 = high; missing: 9",
        "income numeric 0 to 1,000,000; missing: 99999998, refused",
    ]
    assert "<td>1 = low &lt; 2 = high; missing: 9</td>" in BOOK._repr_html_()


def test_many_levels_are_printed_in_brief():
    categorical = dp.Categorical({j: f"level {j}" for j in range(40)}, missing=[-1])
    line = str(dp.codebook(x=categorical)).splitlines()[1]
    assert line.startswith("x         categorical  0 = level 0 | 1 = level 1 | ")
    assert line.endswith(" ... (40 levels); missing: -1")
    assert len(line) < 130
    assert categorical.describe().count("|") == 39


def test_bounds_of_whole_numbers_are_whole_and_printed_so():
    assert repr(dp.Integer(0.0, np.int64(15))) == (
        "Integer(lower=0, upper=15, label='', unit='', missing=())"
    )
    assert dp.Integer(-(10**12), 123_456_789).describe() == "-1,000,000,000,000 to 123,456,789"
    assert dp.Integer(0, 15) != dp.Numeric(0, 15, step=1)
    with pytest.raises(CodebookError, match=r"lower bound 0\.5 .*dp\.Integer\(0, 15\)"):
        dp.Integer(0.5, 15.5)
    with pytest.raises(CodebookError, match="equal or reversed"):
        dp.Integer(3, 3)
    with pytest.raises(ArgumentError, match="no parameter step="):
        dp.Integer(0, 15, step=2)


def test_missing_codes_are_missing_however_the_cell_is_written():
    number = dp.Numeric(0, 10, missing=[-9, "7", "refused"])
    assert column(number, [-9, "-9.0", 7.0, True, "refused", 5, -8]) == [
        *[None] * 3,
        1.0,
        None,
        5.0,
        -8.0,
    ]
    # Before rounding and clipping: 99 is missing, 98.6 is not.
    assert column(dp.Integer(0, 10, missing=[99]), [99, 98.6, 2.6]) == [None, 10.0, 3.0]
    day = dp.Date("2001-01-01", "2001-12-31", missing=["2001-06-01", np.datetime64("1900-01-01")])
    assert column(day, ["2001-06-01", "1900-01-01", "2001-01-02"]) == [None, None, 11324.0]
    # The number 1 would be the level "01" were it not a missing code.
    assert column(dp.Categorical(["01", "b"], missing=["1"]), ["01", "1", 1, "b"]) == [
        *(0.0, None, None, 1.0)
    ]


@pytest.mark.parametrize("missing", [-9, "-9", None, [None], [math.nan], [[1]], [10**400], "abc"])
def test_missing_codes_are_a_list_of_plain_values(missing):
    for declare in (
        lambda: dp.Numeric(0, 1, missing=missing),
        lambda: dp.Integer(0, 1, missing=missing),
        lambda: dp.Date("2001-01-01", "2001-01-02", missing=missing),
        lambda: dp.Categorical(["a", "b"], missing=missing),
        lambda: dp.Boolean(missing=missing),
    ):
        with pytest.raises(CodebookError, match="missing"):
            declare()


@pytest.mark.parametrize(
    ("levels", "code"), [([1, 2], 1), ([1, 2], "2"), (["1", "2"], 1.0), ([False, True], 1)]
)
def test_a_missing_code_is_no_level(levels, code):
    with pytest.raises(CodebookError, match=r"missing code .* is the declared level"):
        dp.Categorical(levels, missing=[code])


def test_truths_are_read_as_software_writes_them():
    cells = [True, 0, 1.0, "true", "FALSE", np.bool_(True), "yes", 2, None]
    assert column(dp.Boolean(), cells) == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, None, None, None]
    assert dp.Boolean().levels == (False, True)


def test_labels_are_given_by_a_mapping_or_a_list():
    educ = dp.Categorical({1: "low", 2: "high"})
    assert educ == dp.Categorical([1, 2], labels=["low", "high"])
    assert educ == dp.Categorical([1, 2], labels={2: "high", "1": "low"})
    assert (educ.shown(1), educ.shown_levels) == ("low", ("low", "high"))
    assert dp.Categorical([1, 2, 3], labels={3: "other"}).shown_levels == ("1", "2", "other")
    assert dp.Categorical({"a": "a", "b": "b"}).labels == ()
    assert column(educ, [1, "2", "low", "lower"]) == [0.0, 1.0, 0.0, None]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({4: "x"}, "names '4'"),
        (["x"], "1 labels for 2 levels"),
        (["x", "x"], "repeat a text"),
        ({1: "2"}, "repeat a text"),
        (["x", 3], "label 3 of a level"),
        (["x", " "], "label ' ' of a level"),
        ("xy", "labels='xy'"),
        (3, "labels=3"),
        ({1: "\x1b[31m"}, "control characters"),
        ({(1,): "x"}, r"level \(1,\)"),
    ],
)
def test_labels_that_tables_could_not_print_are_refused(labels, message):
    with pytest.raises(CodebookError, match=message):
        dp.Categorical([1, 2], labels=labels)


def test_labels_are_written_once():
    with pytest.raises(CodebookError, match="labels= is given too"):
        dp.Categorical({1: "low", 2: "high"}, labels=["a", "b"])


def test_dtypes_of_pandas_are_declarations():
    dtype = pd.CategoricalDtype(["low", "high"], ordered=True)
    assert dp.codebook(x=dtype)["x"] == dp.Categorical(["low", "high"], ordered=True)
    assert dp.codebook(x=pd.CategoricalDtype([3, 1]))["x"] == dp.Categorical([3, 1])
    with pytest.raises(CodebookError, match="'x': a CategoricalDtype without categories"):
        dp.codebook(x=pd.CategoricalDtype())


def test_labels_and_units_are_no_part_of_the_facts_and_missing_codes_are():
    stated = declared_facts("~ .", BOOK)
    bare = declared_facts("~ .", dp.codebook(educ=dp.Categorical([1, 2], missing=[9])))
    assert stated["variable 'educ'"] == bare["variable 'educ'"] == "[1, 2], missing [9]"
    assert stated["variable 'visits'"] == "0.0 to 15.0 by 1.0, missing [-9, 7]"
    assert stated["variable 'born'"] == "1900-01-01 to 2010-12-31, missing ['1901-01-01']"


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
CODES = st.lists(st.one_of(TEXTS, st.integers(-99, -1)), max_size=3)
VARIABLES = st.one_of(
    st.builds(
        lambda ends, *words: dp.Integer(*sorted(ends), *words),
        st.lists(st.integers(-(2**39), 2**39), min_size=2, max_size=2, unique=True),
        TEXTS,
        TEXTS,
        CODES,
    ),
    st.builds(
        lambda ends, *words: dp.Date(*sorted(ends), *words),
        st.lists(st.dates(), min_size=2, max_size=2, unique=True),
        TEXTS,
        CODES,
    ),
    st.builds(dp.Boolean, TEXTS, st.lists(st.integers(2, 9), max_size=2)),
    st.builds(dp.Numeric, st.just(0), st.just(2.5), TEXTS, TEXTS, st.just(0.5), CODES),
    st.builds(
        lambda levels, label, missing, ordered: dp.Categorical(
            levels, label, missing=missing, ordered=ordered
        ),
        st.dictionaries(st.integers(0, 9), TEXTS.filter(str.strip), min_size=2, max_size=4).filter(
            lambda labels: len(set(labels.values())) == len(labels)
        ),
        TEXTS,
        st.lists(st.integers(-9, -1), max_size=2),
        st.booleans(),
    ),
)


@pytest.mark.product
@given(st.dictionaries(st.sampled_from("abc"), VARIABLES, max_size=3).map(Codebook))
def test_json_gives_back_every_kind_of_variable(book):
    back = Codebook.from_dict(json.loads(json.dumps(book.to_dict())))
    assert back == book
    assert [type(value) for value in back.values()] == [type(value) for value in book.values()]
    assert hash(back) == hash(book)
    assert str(back) == str(book)


def test_files_of_before_are_read():
    old = {"age": {"range": [0, 100], "unit": "years", "step": 1}, "sex": {"levels": ["F", "M"]}}
    assert Codebook.from_dict(old) == dp.codebook(
        age=dp.Numeric(0, 100, unit="years", step=1), sex=["F", "M"]
    )
    assert Codebook.from_dict(old).to_dict() == old


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "integer", "range": [0, 1.5]},
        {"type": "integer", "range": [0, 10**400]},
        {"type": "integer", "range": [0, 15], "step": 2},
        {"type": "integer", "range": ["0", "15"]},
        {"type": "date", "range": [0, 15]},
        {"type": "date", "range": ["2001-01-01", "now"]},
        {"type": "date", "range": ["2001-01-01", "99999-01-01"]},
        {"type": "date", "range": ["2001-01-01"]},
        {"type": "date", "range": ["2001-01-01", "2001-12-31"], "unit": "days"},
        {"type": "boolean", "levels": [0, 1]},
        {"type": "boolean", "missing": [True]},
        {"type": "eval", "range": [0, 1]},
        {"type": ["date"], "range": [0, 1]},
        {"range": [0, 1], "missing": "-9"},
        {"range": [0, 1], "missing": [{}]},
        {"range": [0, 1], "ordered": True},
        {"levels": [1, 2], "labels": ["a", "a"]},
        {"levels": [1, 2], "labels": {"3": "a"}},
        {"levels": [1, 2], "labels": ["\x1b[2J", "a"]},
        {"levels": [1, 2], "labels": 5},
        {"levels": [1, 2], "ordered": "yes"},
        {"levels": [1, 2], "ordered": 1},
        {"levels": [1, 2], "missing": [2]},
        {"levels": [1, 2], "missing": ["\ud800"]},
        {"levels": {"1": "a", "2": "b"}},
        None,
        "date",
    ],
    ids=repr,
)
def test_hostile_entries_are_refused_by_name(entry):
    with pytest.raises(CodebookError, match="variable 'x'"):
        from_plain("x", entry)


ODD = [
    *(None, True, 0, -1, 10**400, 0.5, math.nan, math.inf, "", "x", "2001-01-01", "\x1b[31m"),
    *("\ud800", [], {}, [[]], [None], ["x", "x"], {"x": 1}, {"1": "one"}, [1, 2, 3]),
]


def _places(plain):
    """All places in a file, as the keys that lead to them."""
    yield ()
    items = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, inner in items:
        yield from ((key, *extra) for extra in (_places(inner) if _holds(inner) else [()]))


def _holds(plain):
    return isinstance(plain, dict | list)


def test_a_file_with_anything_anywhere_is_read_or_refused():
    plain = json.loads(json.dumps(BOOK.to_dict()))
    places = list(_places(plain))
    assert len(places) > 30
    for odd in ODD:
        for *way, last in filter(None, places):
            changed = json.loads(json.dumps(plain))
            inner = changed
            for key in way:
                inner = inner[key]
            inner[last] = odd
            text = _read(changed)
            assert len(text) < 5000
            text.encode()


def _read(plain):
    """What a file prints as, or why it does not."""
    try:
        return str(Codebook.from_dict(plain))
    except CodebookError as refused:
        return str(refused)
