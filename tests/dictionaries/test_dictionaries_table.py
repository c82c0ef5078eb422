"""Data dictionaries as CSV and Excel: how people name columns, and what is refused."""

import zipfile

import openpyxl
import pytest

import dpmodels as dp
from dpmodels.dictionaries.entry import kind_in, levels_in, number_in, range_in
from dpmodels.errors import CodebookError

LINES = [
    ("Variable Name", "Type", "Minimum", "Max.", "Value labels", "Question", "Units", "NA values"),
    ("age", "whole number", 0, 110, "", "Age at interview", "years", -9),
    ("wage", "number", 0, "250,000", "", "", "dollars", "-8=dk; -9=refused"),
    ("sex", "", "", "", "1=male; 2=female", "Sex", "", 9),
    ("region", "factor", "", "", "north|south|east", "", "", ""),
    ("enrolled", "date", "2001-01-01", "2020-12-31", "", "", "", ""),
    ("smokes", "yes/no (boolean)", "", "", "", "ever", "", ""),
    ("educ", "ordinal", 1, 3, "", "", "", ""),
    ("score", "", "", "", "0-10", "", "", ""),
    ("town", "text", "", "?", "unknown", "", "", ""),
]
BOOK = dp.codebook(
    age=dp.Integer(0, 110, "Age at interview", "years", [-9]),
    wage=dp.Numeric(0, 250_000, unit="dollars", missing=[-8, -9]),
    sex=dp.Categorical({1: "male", 2: "female"}, "Sex", missing=[9]),
    region=["north", "south", "east"],
    enrolled=dp.Date("2001-01-01", "2020-12-31"),
    smokes=dp.Boolean("ever"),
    educ=dp.Categorical([1, 2, 3], ordered=True),
    score=(0, 10),
)


def written(folder, lines, mark=","):
    text = "\n".join(mark.join(f'"{cell}"' for cell in line) for line in lines)
    (folder / "dictionary.csv").write_text(text + "\n", encoding="utf-8-sig")
    return folder / "dictionary.csv"


@pytest.fixture
def sheet(tmp_path):
    """An Excel file of lines, under a title."""

    def made(lines):
        book = openpyxl.Workbook()
        for line in [("Study of visits",), (), *lines]:
            book.active.append(line)
        book.save(tmp_path / "dictionary.xlsx")
        return tmp_path / "dictionary.xlsx"

    return made


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_dictionary_in_delimited_text_is_read(tmp_path, mark):
    draft = dp.codebook.draft(written(tmp_path, LINES, mark))
    assert draft.unknown == ("town",)
    assert draft.codebook_for("~ age + sex") == BOOK


def test_a_dictionary_in_excel_says_the_same(tmp_path, sheet):
    assert dp.codebook.draft(sheet(LINES)) == dp.codebook.draft(written(tmp_path, LINES))


def test_the_dictionary_of_a_research_database_is_read(tmp_path):
    lines = [
        (
            "Variable / Field Name",
            "Form Name",
            "Field Type",
            "Choices, Calculations, OR Slider Labels",
            "Field Label",
            "Text Validation Min",
            "Text Validation Max",
        ),
        ("sex", "base", "radio", "1, Female | 2, Male", "Sex at birth", "", ""),
        ("weight", "base", "text", "", "Weight", 20, 300),
    ]
    draft = dp.codebook.draft(written(tmp_path, lines))
    assert draft["sex"].variable("sex") == dp.Categorical({1: "Female", 2: "Male"}, "Sex at birth")
    assert draft["weight"].variable("weight") == dp.Numeric(20, 300, "Weight")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*LINES[:2], ("age", "", 0, 100)], "'age' has two entries that disagree: upper"),
        ([*LINES[:1], ("age", "", "low", 100)], "variable 'age': min is 'low'"),
        ([*LINES[:1], ("age", "", 100, 0)], "variable 'age': bounds .* equal or reversed"),
        ([*LINES[:1], ("", "", 0, 100)], "entry 1 has no name"),
        ([*LINES[:1], ("sex", "", "", "", "1=m; 2")], "variable 'sex': of the levels .* some"),
        ([*LINES[:1], ("sex", "", "", "", "1=m; 1=f")], "variable 'sex': level 1 is labelled"),
        ([("name", "range"), ("age", "all")], "variable 'age': range 'all' is not valid"),
        ([("name", "type", "levels"), ("x\x1b[31m", "", "a;b")], ""),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, lines, message):
    wide = [(*line, *[""] * (len(lines[0]) - len(line))) for line in lines]
    if message:
        with pytest.raises(CodebookError, match=message):
            dp.codebook.draft(written(tmp_path, wide))
    else:
        assert "\x1b" not in repr(dp.codebook.draft(written(tmp_path, wide)))


def test_words_for_nothing_are_levels_and_names_where_they_stand_among_others(tmp_path):
    lines = [
        ("name", "levels", "label"),
        ("none", "none; some; unknown; ?", "Unknown"),
        ("na", "-"),
    ]
    lines = [(*line, "")[:3] for line in lines]
    draft = dp.codebook.draft(written(tmp_path, lines))
    assert draft["none"].levels == ("none", "some", "unknown", "?")
    assert draft["none"].label == "Unknown"
    assert draft.unknown == ("na",)
    draft.save(tmp_path / "draft.json")
    assert dp.codebook.draft(tmp_path / "draft.json") == draft


def test_the_same_entry_twice_is_one(tmp_path):
    assert len(dp.codebook.draft(written(tmp_path, [*LINES[:2], LINES[1]]))) == 1


def test_a_table_of_rows_is_refused_without_a_cell(tmp_path):
    rows = [("name", "age", "town"), ("CANARY-7731", "41", "CANARY-7731")]
    with pytest.raises(CodebookError, match="is not a data dictionary") as caught:
        dp.codebook.draft(written(tmp_path, rows))
    assert "CANARY" not in str(caught.value)
    assert "dp.codebook.draft(pandas.read_csv(...))" in str(caught.value)


@pytest.mark.parametrize("part", [0.02, 0.5, 0.98])
def test_a_truncated_sheet_is_refused(sheet, part):
    path = sheet(LINES)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(CodebookError, match=r"dictionary\.xlsx"):
        dp.codebook.draft(path)


def test_a_sheet_that_unpacks_without_end_or_has_entities_is_refused(tmp_path):
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bin", b"")
        archive.infolist()[0].file_size = 2**40
    with pytest.raises(CodebookError, match="unpacks to more than"):
        dp.codebook.draft(bomb)
    lol = tmp_path / "lol.xlsx"
    with zipfile.ZipFile(lol, "w") as archive:
        archive.writestr("xl/workbook.xml", '<!DOCTYPE a [<!ENTITY b "lol">]><a>&b;</a>')
    with pytest.raises(CodebookError, match="declares the entity 'b'"):
        dp.codebook.draft(lol)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'name,min,max\n"a', b"", b"\0\0\0,"])
def test_what_is_no_text_or_damaged_is_refused(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(CodebookError, match=r"a\.csv"):
        dp.codebook.draft(tmp_path / "a.csv")


def test_words_are_read_as_people_mean_them():
    assert levels_in("0,1", "") == {0: "", 1: ""}
    assert levels_in("01=a;02=b", "") == {"01": "a", "02": "b"}
    assert levels_in("<=50K; >50K", "") == {"<=50K": "", ">50K": ""}
    assert levels_in("<=50K; >=51K", "") == {"<=50K": "", ">=51K": ""}
    assert levels_in("1=<=50K; 2=>50K", "") == {1: "<=50K", 2: ">50K"}
    assert levels_in("<=50K = low; >50K = high", "") == {"<=50K": "low", ">50K": "high"}
    assert [range_in(text) for text in ("0..110", "-5 to 5", "0:1", "(0; 1)", "a-b", "5")] == [
        (0, 110),
        (-5, 5),
        (0, 1),
        (0, 1),
        None,
        None,
    ]
    assert number_in("1e400") != number_in("1e400")
    assert [kind_in(word) for word in ("Int64", "STRING", "double", "picture")] == [
        "integer",
        "categorical",
        "numeric",
        "",
    ]
