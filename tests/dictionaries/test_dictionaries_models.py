"""Frictionless, JSON Schema, pydantic and pandera: constraints that people wrote down."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError

FIELDS = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"], "required": True}},
        {"name": "educ", "type": "integer", "categoriesOrdered": True, "title": "Education",
         "categories": [{"value": 1, "label": "low"}, {"value": 2, "label": "high"}]},
        {"name": "day", "type": "date",
         "constraints": {"minimum": "2001-01-01", "maximum": "2020-12-31"}},
        {"name": "ever", "type": "boolean"},
    ],
    "missingValues": ["", "-9"],
}  # fmt: skip
SCHEMA = {
    "type": "object",
    "$defs": {"Sex": {"enum": ["F", "M"], "title": "Sex"}},
    "properties": {
        "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 111, "title": "Age",
                "description": "years of age"},
        "wage": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 5}, {"type": "null"}]},
        "sex": {"$ref": "#/$defs/Sex"},
        "educ": {"oneOf": [{"const": 1, "title": "low"}, {"const": 2, "title": "high"}]},
        "ever": {"type": ["boolean", "null"]},
        "either": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 5}, {"type": "number"}]},
        "name": {"type": "string", "minLength": 1},
        "day": {"type": "string", "format": "date"},
    },
}  # fmt: skip


def test_a_table_schema_is_read(tmp_path):
    draft = dp.codebook.draft(FIELDS)
    assert draft.codebook() == dp.codebook(
        age=dp.Integer(0, 110, missing=[-9]),
        sex=dp.Categorical(["F", "M"], missing=[-9]),
        educ=dp.Categorical({1: "low", 2: "high"}, "Education", missing=[-9], ordered=True),
        day=dp.Date("2001-01-01", "2020-12-31", missing=[-9]),
        ever=dp.Boolean(missing=[-9]),
    )
    (tmp_path / "package.json").write_text(json.dumps({"resources": [{"schema": FIELDS}] * 2}))
    assert dp.codebook.draft(tmp_path / "package.json") == draft


def test_a_json_schema_is_read():
    draft = dp.codebook.draft(SCHEMA)
    assert draft.codebook_for("~ age") == dp.codebook(
        age=dp.Integer(0, 110, "years of age"),
        wage=(0, 5),
        sex=["F", "M"],
        educ=dp.Categorical({1: "low", 2: "high"}),
        ever=dp.Boolean(),
    )
    assert draft.unknown == ("either", "name", "day")
    listed = {"type": "array", "items": SCHEMA, "$defs": SCHEMA["$defs"]}
    assert dp.codebook.draft(listed) == draft


def test_a_pydantic_model_is_read_by_its_schema():
    model = type("Person", (), {"model_json_schema": classmethod(lambda name: SCHEMA)})
    assert dp.codebook.draft(model) == dp.codebook.draft(SCHEMA)
    assert "From a pydantic model, Person" in repr(dp.codebook.draft(model))


def check(name, **statistics):
    return SimpleNamespace(name=name, statistics=statistics)


def column(dtype, *checks, title=None):
    simple_namespace = SimpleNamespace(type=dtype)
    return SimpleNamespace(dtype=simple_namespace, checks=checks, title=title, description=None)


def test_a_pandera_schema_is_read_by_its_checks():
    bounds = check("greater_than_or_equal_to", min_value=0), check("less_than", max_value=110)
    columns = {
        "age": column(np.dtype("int64"), *bounds, title="Age"),
        "share": column(np.dtype("float64"), check("in_range", min_value=0, max_value=1)),
        "sex": column(np.dtype("O"), check("isin", allowed_values=["F", "M"])),
        "educ": column(pd.CategoricalDtype(["low", "high"])),
        "name": column(np.dtype("O"), check("str_length", min_value=1)),
    }
    schema = SimpleNamespace(columns=columns, checks=[])
    draft = dp.codebook.draft(schema)
    assert draft.codebook_for("~ age") == dp.codebook(
        age=dp.Integer(0, 110, "Age"), share=(0, 1), sex=["F", "M"], educ=["low", "high"]
    )
    model = type("Rows", (), {"to_schema": classmethod(lambda name: schema)})
    assert dp.codebook.draft(model) == draft


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"fields": {"a": 1}}, "its fields are not a list"),
        ({"fields": [{"type": "integer"}]}, "a field has no name"),
        ({"fields": [*FIELDS["fields"], {"name": "sex", "type": "integer"}]}, "'sex' has two"),
        ({"fields": [{"name": "a", "constraints": [1]}]}, "'a': its constraints are not an object"),
        ({"fields": [{"name": "a", "constraints": {"enum": [[1]]}}]}, "'a': a level is not a text"),
        ({"fields": [{"name": "a", "constraints": {"minimum": "low"}}]}, "'a': minimum is 'low'"),
        ({"resources": [{"path": "a.csv"}]}, "no resource with a table schema"),
        ({"properties": [1]}, 'no "properties"'),
        ({"properties": {"a": 1}}, "variable 'a': expected an object"),
        ({"properties": {"a": {"$ref": "http://example.org/a"}}}, "within the schema"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "variable 'a'"),
        (
            {"properties": {"a": {"type": "number", "minimum": "0"}}},
            "'a': minimum '0' is not a finite number",
        ),
        ({"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 0}}}, "variable 'a'"),
        ({"properties": {"a": {"enum": [{"b": 1}, 2]}}}, "variable 'a'"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(source, message):
    with pytest.raises(CodebookError, match=message):
        dp.codebook.draft(source)


def test_choices_are_nested_twenty_deep_at_most():
    schema = {"type": "integer", "minimum": 0, "maximum": 5}
    for _ in range(20):
        schema = {"anyOf": [schema]}
    assert dp.codebook.draft({"properties": {"a": schema}})["a"].kind == "integer"
    with pytest.raises(CodebookError, match="nested more than 20 deep"):
        dp.codebook.draft({"properties": {"a": {"anyOf": [schema]}}})


def test_choices_without_end_are_refused():
    schema = {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}
    with pytest.raises(CodebookError, match="variable 'a': choices are nested"):
        dp.codebook.draft(schema | {"properties": {"a": {"$ref": "#/$defs/A"}}})
    wide = {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}] * 2}}}
    with pytest.raises(CodebookError, match="variable 'a': choices are nested"):
        dp.codebook.draft(wide | {"properties": {"a": {"$ref": "#/$defs/A"}}})
