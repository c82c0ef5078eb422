"""The codebook: what may be declared, how the rest is refused, and the way to JSON and back."""

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.codebook import Codebook, of_variables
from dpmodels.errors import CodebookError, FrameError
from dpmodels.labels import plain
from dpmodels.variables import Categorical, Numeric

BOOK = dp.codebook(
    age=dp.Numeric(0, 100, label="age at interview", unit="years"),
    income=(0, 250_000),
    sex=["F", "M"],
    smokes=dp.Categorical([False, True], label="ever & now"),
    children=range(4),
)


def test_a_tuple_is_a_range_and_a_list_is_a_set_of_levels():
    assert BOOK["income"] == Numeric(0, 250_000)
    assert BOOK["sex"] == Categorical(("F", "M"))
    assert BOOK["children"].levels == (0, 1, 2, 3)
    assert list(BOOK) == ["age", "income", "sex", "smokes", "children"]
    assert len(BOOK) == 5
    assert "sex" in BOOK
    assert "race" not in BOOK


@pytest.mark.parametrize("source", [["x"], "x", {"x"}, 3])
def test_what_declares_nothing_by_name_is_refused(source):
    with pytest.raises(CodebookError, match=r"cannot be made of a .*dp\.codebook\(age=\(0, 100\)"):
        dp.codebook(source)


def test_names_need_not_be_identifiers():
    book = dp.codebook({"wage in $": (0, 100)}, self=(0, 1), variables=(0, 2))
    assert list(book) == ["wage in $", "self", "variables"]


def test_numbers_of_every_kind_become_plain_numbers():
    numeric = Numeric(np.int64(-1), Fraction(1, 2))
    assert (numeric.lower, numeric.upper) == (-1.0, 0.5)
    assert {type(numeric.lower), type(numeric.upper)} == {float}
    levels = Categorical(np.array([3, 1, 2])).levels
    assert levels == (3, 1, 2)
    assert {type(level) for level in levels} == {int}


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0),
        (0, 0),
        (0, math.inf),
        (-math.inf, 0),
        (math.nan, 1),
        (0, math.nan),
        (0, 10**400),
        (-(10**400), 0),
        (False, True),
        ("0", "1"),
        (None, 1),
        (0, None),
        (0, 1j),
        ([0], [1]),
        (2**53, 2**53 + 1),
        (np.zeros(3), np.ones(3)),
    ],
)
def test_bounds_are_finite_numbers_in_order(bounds):
    with pytest.raises(CodebookError, match=r"variable 'height': .*\(0, 100\)"):
        dp.codebook(weight=(0, 1), height=bounds)


@pytest.mark.parametrize(
    "levels",
    [
        [],
        ["F"],
        ["F", "F"],
        [1, True],
        [0, 0.0],
        [1, "1"],
        ["F", None],
        ["F", math.nan],
        ["F", ["M"]],
        ["F", b"M"],
        ["F", ("M",)],
        range(1),
    ],
)
def test_levels_are_two_or_more_different_plain_values(levels):
    with pytest.raises(CodebookError, match=r"variable 'race': level"):
        dp.codebook(weight=(0, 1), race=levels)


@pytest.mark.parametrize(
    "declared",
    [None, 3, "F M", (0,), (0, 1, 2), {"F", "M"}, {"range": [0, 1]}, np.arange(3), float, b"ab"],
)
def test_other_declarations_are_refused_by_name(declared):
    with pytest.raises(CodebookError, match="variable 'race' is declared as") as caught:
        dp.codebook(weight=(0, 1), race=declared)
    assert "(0, 100)" in str(caught.value)
    assert '["F", "M"]' in str(caught.value)


@pytest.mark.parametrize("declared", [bool, dp.Boolean])
def test_the_type_of_truth_values_declares_them(declared):
    assert dp.codebook(died=declared)["died"] == dp.Boolean()


@pytest.mark.parametrize("name", ["", "  ", "\n", 3, None, ("a",)])
def test_names_are_texts(name):
    with pytest.raises(CodebookError, match="variable name"):
        dp.codebook({name: (0, 1)})


@pytest.mark.parametrize("text", [3, None, b"years", ["years"]])
def test_labels_and_units_are_texts(text):
    with pytest.raises(CodebookError, match="label or unit"):
        Numeric(0, 1, label=text)
    with pytest.raises(CodebookError, match="label or unit"):
        Numeric(0, 1, unit=text)
    with pytest.raises(CodebookError, match="label or unit"):
        Categorical(["a", "b"], label=text)


def test_messages_stay_short():
    for declared in (["x" * 10_000] * 2, "x" * 10_000, [["x" * 10_000], "y"], (0, "x" * 10_000)):
        with pytest.raises(CodebookError) as caught:
            dp.codebook(long=declared)
        assert len(str(caught.value)) < 500


def test_a_codebook_does_not_change():
    with pytest.raises(TypeError):
        BOOK["age"] = (0, 1)
    with pytest.raises(AttributeError):
        BOOK["age"].lower = -1
    levels = ["a", "b"]
    codebook = dp.codebook(x=levels)
    levels.append("c")
    assert codebook["x"].levels == ("a", "b")


def test_equality_and_hash_are_by_content():
    again = dp.codebook(BOOK)
    assert again == BOOK
    assert hash(again) == hash(BOOK)
    assert again.select(["income"]) != again
    assert again != dict(again)
    assert pickle.loads(pickle.dumps(BOOK)) == BOOK


def test_the_union_is_won_by_the_right():
    joined = BOOK | {"age": (18, 99), "race": ["a", "b"]}
    assert isinstance(joined, Codebook)
    assert list(joined) == [*BOOK, "race"]
    assert joined["age"] == Numeric(18, 99)
    assert BOOK["age"].upper == 100
    assert BOOK | BOOK == BOOK
    with pytest.raises(CodebookError, match="'race'"):
        BOOK | {"race": "a"}


def test_select_keeps_order_and_names_what_is_missing():
    assert list(BOOK.select(["sex", "age"])) == ["sex", "age"]
    assert list(BOOK.select(name for name in BOOK if name != "age")) == list(BOOK)[1:]
    assert len(BOOK.select([])) == 0
    with pytest.raises(CodebookError, match="'race' is not in the codebook"):
        BOOK.select(["age", "race"])
    with pytest.raises(CodebookError, match="'age' is one string"):
        BOOK.select("age")


def test_selected_variables_keep_the_roles_and_variables_alone_have_none():
    roles = {"person": "id", "design": dp.design(weights="w", weights_are="design", bounds=(1, 9))}
    ids = {"key": dp.Identifier(missing=["0"])}
    book = Codebook({**BOOK, **ids}, **roles).beside_table()
    part, alone = book.select(["sex", "age"]), of_variables(book)
    chosen = {name: BOOK[name] for name in ("sex", "age")}
    assert part == Codebook({**chosen, **ids}, **roles)
    assert not part.attached
    assert repr(part) == repr(Codebook({**chosen, **ids}, **roles))
    assert alone == Codebook(dict(BOOK))
    assert hash(alone) == hash(Codebook(dict(BOOK)))
    assert (alone.person, alone.design, dict(alone.identifiers)) == (None, None, {})
    assert (alone | {"born": (1900, 2030)})["born"] == Numeric(1900, 2030)


def test_uniform_declares_many_alike():
    book = dp.codebook.uniform((f"pixel{j}" for j in range(64)), (0, 255))
    assert len(book) == 64
    assert set(book.values()) == {Numeric(0, 255)}
    assert dp.codebook.uniform(["q1", "q2"], ["no", "yes"])["q2"].levels == ("no", "yes")
    with pytest.raises(CodebookError, match="'pixel' is one string"):
        dp.codebook.uniform("pixel", (0, 255))
    with pytest.raises(CodebookError, match="'q1'"):
        dp.codebook.uniform(["q1", "q2"], (3, 1))


def test_it_prints_as_a_table():
    assert str(BOOK).splitlines() == [
        "variable  type         declared       unit   label",
        "age       numeric      0 to 100       years  age at interview",
        "income    numeric      0 to 250,000",
        "sex       categorical  F | M",
        "smokes    categorical  False | True          ever & now",
        "children  categorical  0 | 1 | 2 | 3",
    ]
    assert str(dp.codebook(x=(-0.5, 1e-9), y=(-1e20, 1e20))).splitlines() == [
        "variable  type     declared",
        "x         numeric  -0.5 to 1e-09",
        "y         numeric  -1e+20 to 1e+20",
    ]
    assert str(dp.codebook()) == "variable  type  declared"


def test_the_html_table_is_escaped():
    html = dp.codebook({"<b>": ["<", "&"]}, x=Numeric(0, 1, label="<i>"))._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html
    assert "<td>&lt; | &amp;</td>" in html
    assert "<td>&lt;i&gt;</td>" in html
    assert html.count("<tr>") == 3


# Control characters act on terminals that print them, and are refused.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
NAMES = TEXTS.filter(str.strip)
BOUNDS = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False))
WHOLE = st.one_of(st.integers(-(2**53), 2**53), st.sampled_from([2**60, -(2**70)]))
RANGES = st.lists(BOUNDS, min_size=2, max_size=2).filter(lambda two: float(two[0]) != float(two[1]))
NUMERICS = st.builds(
    lambda bounds, label, unit: Numeric(*sorted(map(float, bounds)), label, unit),
    RANGES,
    TEXTS,
    TEXTS,
)


def _number(level):
    try:
        return float(level)
    except ValueError:
        return level


CATEGORICALS = st.builds(
    Categorical,
    st.lists(
        st.one_of(TEXTS, WHOLE, st.floats(allow_nan=False), st.booleans()),
        min_size=2,
        max_size=5,
        unique_by=(str, _number),
    ),
    TEXTS,
)
BOOKS = st.dictionaries(NAMES, st.one_of(NUMERICS, CATEGORICALS), max_size=5).map(Codebook)


@pytest.mark.product
@given(BOOKS)
def test_json_gives_back_what_was_declared(book):
    back = Codebook.from_dict(json.loads(json.dumps(book.to_dict())))
    assert back == book
    assert list(back) == list(book)
    kinds = [[type(level) for level in getattr(value, "levels", ())] for value in back.values()]
    assert kinds == [
        [type(level) for level in getattr(value, "levels", ())] for value in book.values()
    ]


@pytest.mark.product
@given(BOOKS)
def test_every_codebook_prints(book):
    assert all(plain(name) in repr(book) for name in book)
    assert book._repr_html_().count("<tr>") == len(book) + 1


def test_a_file_gives_back_what_was_saved(tmp_path):
    path = tmp_path / "codebook.json"
    BOOK.save(path)
    assert Codebook.load(path) == BOOK
    assert dp.codebook.load(str(path)) == BOOK
    written = json.loads(path.read_text("utf-8"))
    assert written["age"] == {"range": [0, 100], "unit": "years", "label": "age at interview"}
    assert written["income"] == {"range": [0, 250_000]}
    assert written["smokes"] == {"levels": [False, True], "label": "ever & now"}


HOSTILE_ENTRIES = [
    "3",
    "null",
    "[0, 1]",
    '"range"',
    "{}",
    '{"range": [0, 1], "levels": ["a", "b"]}',
    '{"range": [0]}',
    '{"range": [0, 1, 2]}',
    '{"range": [1, 0]}',
    '{"range": {"lower": 0}}',
    '{"range": ["0", "1"]}',
    '{"range": [false, true]}',
    '{"range": [0, NaN]}',
    '{"range": [0, Infinity]}',
    '{"range": [0, 1e999]}',
    '{"range": [null, 1]}',
    '{"range": [0, 1], "unit": 3}',
    '{"range": [0, 1], "label": ["x"]}',
    '{"range": [0, 1], "lower": 0}',
    '{"range": [0, 1], "__class__": "x"}',
    '{"levels": ["a"]}',
    '{"levels": "ab"}',
    '{"levels": ["a", "a"]}',
    '{"levels": ["a", null]}',
    '{"levels": ["a", ["b"]]}',
    '{"levels": ["a", {"b": 1}]}',
    '{"levels": ["a", NaN]}',
    '{"levels": ["a", "b"], "unit": "x"}',
    '{"range": [0, ' + "9" * 400 + "]}",
]


@pytest.mark.parametrize("entry", HOSTILE_ENTRIES, ids=lambda entry: entry[:40])
def test_a_hostile_entry_is_refused_by_name(entry, tmp_path):
    path = tmp_path / "codebook.json"
    path.write_text(f'{{"good": {{"range": [0, 1]}}, "bad": {entry}}}', "utf-8")
    with pytest.raises(CodebookError, match="'bad'"):
        Codebook.load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"age: 0-100",
        b'{"age": ',
        b"[]",
        b"3",
        b'"age"',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 10_000,
        b'{"": {"range": [0, 1]}}',
    ],
    ids=range(11),
)
def test_a_file_that_is_no_codebook_is_refused(content, tmp_path):
    path = tmp_path / "codebook.json"
    path.write_bytes(content)
    with pytest.raises(CodebookError):
        Codebook.load(path)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(CodebookError, match=r"absent\.json.*it is missing; check the path"):
        Codebook.load(tmp_path / "absent.json")
    with pytest.raises(CodebookError, match="cannot be read"):
        Codebook.load(tmp_path)


@pytest.mark.parametrize(
    "declare",
    [
        lambda bad: dp.codebook({bad: (0, 1)}),
        lambda bad: dp.codebook(a=["x", bad]),
        lambda bad: Numeric(0, 1, label=bad),
        lambda bad: Numeric(0, 1, unit=bad),
    ],
    ids=["name", "level", "label", "unit"],
)
def test_what_would_act_on_a_terminal_is_refused(declare):
    with pytest.raises(CodebookError, match="control characters") as refused:
        declare("\x1b[31m")
    assert "\x1b" not in str(refused.value)


def test_a_turned_text_is_shown_as_its_code():
    assert r"a\u202eb" in repr(dp.codebook({"a\u202eb": (0, 1)}))


def test_a_codebook_is_not_written_over_another(tmp_path):
    BOOK.save(tmp_path / "a.json")
    with pytest.raises(FrameError, match="already exists"):
        dp.codebook(a=(0, 1)).save(tmp_path / "a.json")
    assert Codebook.load(tmp_path / "a.json") == BOOK
    dp.codebook(a=(0, 1)).save(tmp_path / "a.json", overwrite=True)
    assert list(Codebook.load(tmp_path / "a.json")) == ["a"]


def test_a_name_that_is_declared_twice_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"a": {"range": [0, 1]}, "a": {"range": [0, 9]}}', "utf-8")
    with pytest.raises(CodebookError, match="'a' occurs twice"):
        Codebook.load(tmp_path / "a.json")


def test_steps_are_declared_saved_and_refused_where_they_do_not_fit():
    visits = Numeric(0, 15, step=1)
    assert visits.describe() == "0 to 15 by 1"
    assert Numeric(-0.3, 0.6, step=np.float32(0.1)).step == pytest.approx(0.1)
    book = Codebook(visits=visits, age=(0, 100))
    assert Codebook.from_dict(book.to_dict()) == book
    assert "step" not in book.to_dict()["age"]
    for step in (0.7, -1, 16, float("nan"), "1", float("inf")):
        with pytest.raises(CodebookError, match=r"step=1"):
            Numeric(0, 15, step=step)


def test_values_between_steps_are_rounded_to_them_for_every_verb():
    book = Codebook(y=Numeric(0, 4, step=2), x=(0, 4))
    rows = {"y": [0.9, 1.1, 2.6, 3.4, -7.0, 9.0, np.nan] * 50, "x": [1.0] * 350}
    stepped = {"y": [0.0, 2.0, 2.0, 4.0, 0.0, 4.0, np.nan] * 50, "x": [1.0] * 350}
    for formula in ("~ y", "~ I(y * 1)", "y ~ x"):
        verb = dp.dp_mean if formula != "y ~ x" else dp.dp_lm
        with dp.simulation(seed=1):
            params = verb(formula, rows, codebook=book, eps=1.0).params
        with dp.simulation(seed=1):
            second = verb(formula, stepped, codebook=book, eps=1.0).params
        np.testing.assert_array_equal(params, second)
