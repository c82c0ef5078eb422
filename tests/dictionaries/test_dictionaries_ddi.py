"""DDI-Codebook: what was declared is read, what was counted is not, and hostile XML is refused."""

import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
BODY = """<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var ID="V1" name="age" intrvl="contin" dcml="0" measUnit="years">
  <labl>Age of\n the <emph>person</emph></labl><valrng><range min="0" max="110"/></valrng>
  <invalrng><item VALUE="-9"/><range min="-8" max="-7"/></invalrng>
  <sumStat type="min">17</sumStat><sumStat type="max">93</sumStat>
  <catgry missing="Y"><catValu>-9</catValu><labl>refused</labl></catgry>
  <varFormat type="numeric"/></var>
<var ID="V2" name="sex" intrvl="discrete"><labl>Sex</labl>
  <catgry><catValu>1</catValu><labl>Male</labl><catStat type="freq">812</catStat></catgry>
  <catgry><catValu>2</catValu><labl>Female</labl></catgry>
  <catgry missing="Y"><catValu>9</catValu></catgry><varFormat type="numeric"/></var>
<var ID="V3" name="region" nature="ordinal"><catgry><catValu>01</catValu></catgry>
  <catgry><catValu>02</catValu></catgry><varFormat type="character"/></var>
<var ID="V4" name="wage" intrvl="contin"><sumStat type="max">250000</sumStat>
  <catgry><catValu>0</catValu><labl>none</labl></catgry><varFormat type="numeric"/></var>
<var name="day"><varFormat type="numeric" category="date"/></var>
</dataDscr></codeBook>"""


@pytest.fixture
def drafted(tmp_path):
    def made(text):
        (tmp_path / "study.xml").write_text(text, encoding="utf-8")
        return dp.codebook.draft(tmp_path / "study.xml")

    return made


def test_what_people_declared_is_read(drafted):
    draft = drafted(HEAD + BODY)
    assert draft.codebook_for("~ age + sex") == dp.codebook(
        age=dp.Integer(0, 110, "Age of the person", "years", [-9, -8, -7]),
        sex=dp.Categorical({1: "Male", 2: "Female"}, "Sex", missing=[9]),
        region=dp.Categorical(["01", "02"], ordered=True),
    )
    assert draft.unknown == ("wage", "day")


def test_what_was_counted_in_the_rows_changes_nothing(drafted):
    second = BODY.replace("17<", "18<").replace("93<", "94<").replace("812<", "813<")
    assert drafted(HEAD + BODY) == drafted(HEAD + second.replace("250000<", "9<"))


def test_versions_without_a_name_space_say_the_same(drafted):
    assert drafted(HEAD + BODY) == drafted(HEAD + BODY.replace(' xmlns="ddi:codebook:2_5"', ""))


def test_two_entries_of_one_variable_have_to_agree(drafted):
    twice = BODY.replace('name="wage"', 'name="age" measUnit="months"')
    with pytest.raises(CodebookError, match="'age' has two entries that disagree: unit years"):
        drafted(HEAD + twice)


ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'<!DOCTYPE codeBook [<!ENTITY a0 "a">{ENTITIES}]>' + BODY, "entity 'a0'"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>', "entity 'b'"),
        ("<a>" * 200 + "</a>" * 200, "nested more than 100 deep"),
        (BODY[:700], "truncated or is not XML"),
        ("<html><p>no such page</p></html>", "no variables of DDI-Codebook"),
        ("", "truncated"),
        (BODY.replace('max="110"', 'max="old"'), "variable 'age': valrng max is 'old'"),
        (BODY.replace("<catValu>2<", "<catValu>1<"), "'sex': level 1 is labelled 'Male' and"),
        (BODY.replace('max="110"', 'max="0"'), "variable 'age': bounds"),
        (BODY.replace('name="age"', 'name=""').replace('ID="V1"', ""), "variable name"),
    ],
)
def test_hostile_and_damaged_files_are_refused(drafted, text, message):
    with pytest.raises(CodebookError, match=message):
        drafted(HEAD + text)


def test_other_encodings_hide_no_entity(tmp_path):
    text = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    (tmp_path / "a.xml").write_bytes(text.encode("utf-16"))
    with pytest.raises(CodebookError, match="entity 'b'"):
        dp.codebook.draft(tmp_path / "a.xml")


def test_a_document_type_by_name_alone_is_not_looked_up(drafted):
    drafted(HEAD + '<!DOCTYPE codeBook SYSTEM "http://example.org/none.dtd">' + BODY)


def test_a_file_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dpmodels.dictionaries.table.MOST_BYTES", 100)
    (tmp_path / "a.xml").write_text(BODY)
    with pytest.raises(CodebookError, match="longer than 100 bytes"):
        dp.codebook.draft(tmp_path / "a.xml")
