"""Drafts from databases: declared types, comments, CHECK constraints and ENUM types; no row."""

import duckdb
import pytest
from postgres_server import to_sqlite

import dpmodels as dp

COLUMNS = """
    patient_id bigint,
    age int CHECK (age BETWEEN 0 AND 120),
    sex {sex},
    smoker boolean,
    region text CHECK (region IN ('a', 'b, c', 'd''e')),
    weight double precision CHECK (weight > -1.5 AND weight < 2e3),
    day date CHECK (day >= '2001-01-01' AND day <= '2020-12-31'),
    stage int CHECK (stage IN (1, 2, 3)),
    odd int CHECK (odd > 0 OR odd = -9),
    "q""x" int CHECK ("q""x" >= 1),
    two int,
    half real CHECK (half / 2 < 7),
    CHECK (two < age)
"""
DRAFT = {
    "age": ("integer", "0 to 120"),
    "sex": ("categorical", "F | M | it's"),
    "smoker": ("boolean", "False | True"),
    "region": ("categorical", "a | b, c | d'e"),
    "weight": ("numeric", "-1.5 to 2,000"),
    "day": ("date", "2001-01-01 to 2020-12-31"),
    "stage": ("categorical", "1 | 2 | 3"),
    "odd": ("integer", "?"),
    'q"x': ("integer", "1 to ?"),
    "two": ("integer", "?"),
    "half": ("numeric", "?"),
}


def _described(draft):
    return {name: (entry.kind, entry.describe(name)) for name, entry in draft.items()}


def test_duckdb_declares_a_draft(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS.format(sex=_ENUM)})")
        connection.execute("COMMENT ON COLUMN t.age IS 'Age in years'")
        connection.execute("INSERT INTO t (age, region) VALUES (99, 'a')")
    draft = dp.codebook.draft(dp.sql(tmp_path / "t.duckdb", "t"))
    assert _described(draft) == DRAFT
    assert draft["age"].label == "Age in years"
    assert draft.person == "patient_id"


_ENUM = "ENUM ('F', 'M', 'it''s')"


def test_postgresql_declares_a_draft(postgres):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE IF EXISTS declared; DROP TYPE IF EXISTS sex_of")
        connection.execute("DROP DOMAIN IF EXISTS percentage")
        connection.execute(f"CREATE TYPE sex_of AS {_ENUM}")
        connection.execute(
            "CREATE DOMAIN percentage AS numeric CHECK (value >= 0 AND value <= 100)"
        )
        columns = COLUMNS.format(sex="sex_of")
        connection.execute(f"CREATE TABLE declared (score percentage, {columns})")
        connection.execute("COMMENT ON COLUMN declared.age IS 'Age in years'")
    draft = dp.codebook.draft(dp.sql(f"{postgres}&table=declared"))
    assert _described(draft) == {"score": ("numeric", "0 to 100"), **DRAFT}
    assert draft["age"].label == "Age in years"


def test_sqlite_declares_types_alone(tmp_path):
    to_sqlite(tmp_path / "t.db", "t", {"a": [1], "b": ["x"]})
    draft = dp.codebook.draft(dp.sql(tmp_path / "t.db", "t"))
    assert _described(draft) == {"a": ("", "?"), "b": ("", "?")}
