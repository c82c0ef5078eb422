"""Drafts: a ``?`` is refused by name, and what is declared twice has to be the same."""

import json

import pytest

import dpmodels as dp
from dpmodels.dictionaries.draft import Draft
from dpmodels.dictionaries.entry import Entry
from dpmodels.errors import CodebookError, FrameError

DRAFT = dp.codebook.draft(
    {
        "fields": [
            {"name": "age", "type": "integer", "title": "age at interview", "unit": "years"},
            {"name": "wage in $", "type": "number", "constraints": {"minimum": 0}},
            {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
            {"name": "enrolled", "type": "date"},
            {"name": "town", "type": "string"},
            {"name": "odd", "type": "geojson"},
        ],
        "missingValues": ["", "-9"],
    }
)


def test_it_prints_like_a_codebook_and_says_what_to_write():
    assert repr(DRAFT).splitlines() == [
        "variable   type         declared             unit   label",
        "age        integer      ?; missing: -9       years  age at interview",
        "wage in $  numeric      0 to ?; missing: -9",
        "sex        categorical  F | M; missing: -9",
        "enrolled   date         ?; missing: -9",
        "town       categorical  ?; missing: -9",
        "odd        ?            ?; missing: -9",
        "Not known (?): 'age', 'wage in $', 'enrolled', 'town', 'odd'; draft.complete("
        "age=(lower, upper), "
        '**{\'wage in $\': (lower, upper)}, enrolled=("2001-01-01", "2020-12-31"), ...)',
    ]
    assert DRAFT._repr_html_().count("<tr>") == 7


def test_a_codebook_is_made_when_all_is_known():
    done = DRAFT.select(["age", "sex", "enrolled", "town"]).complete(
        age=(0, 110), enrolled=("2001-01-01", "2020-12-31"), town={1: "a town", 2: "a city"}
    )
    assert done.unknown == ()
    book = done.codebook()
    assert book["age"] == dp.Integer(0, 110, "age at interview", "years", missing=[-9])
    assert book["enrolled"] == dp.Date("2001-01-01", "2020-12-31", missing=[-9])
    assert book["town"].labels == ("a town", "a city")


def test_a_declaration_stands_as_it_is_written():
    half = dp.Numeric(0, 10, step=0.5, label="half hours", missing=[99])
    assert DRAFT.complete(age=half)["age"].variable("age") == dp.Numeric(
        0, 10, "half hours", "years", 0.5, [99]
    )


def test_what_is_not_known_is_refused_by_name():
    with pytest.raises(CodebookError, match=r"'age', 'wage in \$', 'enrolled'.*draft\.complete\("):
        DRAFT.codebook()


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("~ age + sex", "'age'"),
        ("sex ~ Q('wage in $')", r"'wage in \$'"),
        ("~ .", "'age'.*'odd'"),
        ("sex ~ . - age", "'town'"),
        ('~ sex + starts_with("ag")', "'town'"),
        (None, "'odd'"),
    ],
)
def test_a_formula_is_refused_if_it_speaks_of_what_is_not_known(formula, options):
    with pytest.raises(CodebookError, match=options):
        DRAFT.codebook_for(formula)


@pytest.mark.parametrize("formula", ["~ sex", "sex ~ 1", "~ 0.5 * I(sex == 'F')"])
def test_a_formula_of_what_is_known_needs_no_more(formula):
    assert list(DRAFT.codebook_for(formula)) == ["sex"]


def test_a_variable_that_is_not_there_is_refused_with_the_one_meant():
    with pytest.raises(CodebookError, match=r"'agee' \(did you mean 'age'\?\)"):
        DRAFT.complete(agee=(0, 110))
    with pytest.raises(CodebookError, match="no variable 'race'"):
        DRAFT.select(["race"])
    with pytest.raises(CodebookError, match=r"variable 'age'.*equal or reversed"):
        DRAFT.complete(age=(110, 0))


def test_two_say_more_than_one():
    extra = dp.codebook.draft({"age": "int64", "race": "object"})
    joined = extra | DRAFT | dp.codebook(age=dp.Integer(0, 110), town=["a", "b"])
    assert joined["age"].variable("age").describe() == "0 to 110; missing: -9"
    assert joined["age"].unit == "years"
    assert set(joined.unknown) == {"race", "wage in $", "enrolled", "odd"}


@pytest.mark.parametrize(
    "entry",
    [
        dp.codebook(sex=["M", "F"]),
        dp.codebook(sex=(0, 1)),
        dp.codebook(sex=dp.Categorical(["F", "M"], missing=["x"])),
    ],
)
def test_two_that_disagree_are_refused_by_name(entry):
    with pytest.raises(CodebookError, match="the declarations: variable 'sex' has two entries"):
        DRAFT | entry


def test_units_that_differ_are_no_matter_of_wording():
    first, second = (dp.codebook(age=dp.Numeric(0, 9, unit=unit, label=unit)) for unit in "my")
    with pytest.raises(CodebookError, match="unit m and y"):
        dp.codebook.draft(first) | second
    same = dp.codebook(age=dp.Numeric(0, 9, unit="m", label="in other words"))
    assert (dp.codebook.draft(first) | same)["age"].label == "m"


def test_a_file_holds_all_of_it_and_becomes_a_codebook_by_hand(tmp_path):
    DRAFT.save(tmp_path / "draft.json")
    assert Draft.load(tmp_path / "draft.json") == DRAFT
    plain = json.loads((tmp_path / "draft.json").read_text())
    with pytest.raises(CodebookError, match="'age'"):
        dp.codebook.load(tmp_path / "draft.json")
    plain["age"]["range"] = [0, 110]
    plain["wage in $"]["range"][1] = 1000
    plain["enrolled"]["range"] = ["2001-01-01", "2020-12-31"]
    plain["town"]["levels"] = ["a", "b"]
    plain["odd"] = {"range": [0, 1]}
    (tmp_path / "by_hand.json").write_text(json.dumps(plain))
    book = dp.codebook.load(tmp_path / "by_hand.json")
    assert book["age"] == dp.Integer(0, 110, "age at interview", "years", missing=[-9])
    assert dp.codebook.draft(tmp_path / "by_hand.json").codebook() == book
    with pytest.raises(FrameError, match="already exists"):
        DRAFT.save(tmp_path / "draft.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"range": ["?", "?"], "levels": [1]}}',
        '{"a": {"range": ["?", "?", "?"]}}',
        '{"a": {"range": ["?", [1]]}}',
        '{"a": {"range": ["?", "high"]}}',
        '{"a": {"type": "date", "range": ["?", "2001-13-01"]}}',
        '{"a": {"range": ["?", 1], "label": "\\u001b[31m"}}',
        '{"a": {"range": ["?", 1], "step": 1}}',
        '{"a": {"type": "number", "range": "?"}}',
        '{"": {"range": "?"}}',
        '{"a": "?"}',
        '{"a": {"range": ["?", 1]',
        "[]",
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, text):
    (tmp_path / "draft.json").write_text(text)
    with pytest.raises(CodebookError):
        dp.codebook.draft(tmp_path / "draft.json")


@pytest.mark.parametrize(
    ("levels", "warned"),
    [
        ({-8: "don't know", 1: "very low", 5: "very high"}, True),
        ({0: "never", 10: "always"}, True),
        ({1: "none", 2: "school", 9: "refused"}, False),
        ({"a": "yes", "b": "no"}, False),
        ([1, 5], False),
    ],
)
def test_a_scale_whose_ends_alone_have_labels_is_pointed_out(levels, warned):
    draft = Draft({"satisf": Entry.of(dp.Categorical(levels)), "age": Entry("numeric")})
    assert ("satisf=dp.Integer(lower, upper, missing=[...])" in repr(draft)) == warned
    scale = draft.complete(satisf=dp.Integer(1, 5, missing=[-8]))
    assert "satisf=" not in repr(scale)
