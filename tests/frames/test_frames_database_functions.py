"""Functions, policies and columns of a database that an enemy wrote: counts and sums stay true."""

import random
import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pytest
from postgres_server import to_duckdb, to_postgres

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames import open_rows

psycopg = pytest.importorskip("psycopg")
COLUMNS = {"x": [0.25, 0.5, 0.5, 0.75] * 30, "g": list("abbb") * 30}
TYPES = {"x": "DOUBLE PRECISION", "g": "VARCHAR"}
BOOK = dp.codebook(x=(0, 1), g=["a", "b"])
# Aggregates and a type that stand before those of PostgreSQL where a path of schemas says so.
SHADOWS = """
CREATE SCHEMA enemy;
CREATE FUNCTION enemy.seven(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint';
CREATE FUNCTION enemy.seven(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS 'SELECT 7e6::numeric';
CREATE FUNCTION enemy.seven(numeric, bigint) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS 'SELECT 7e6::numeric';
CREATE AGGREGATE enemy.count(*) (SFUNC = enemy.seven, STYPE = bigint, INITCOND = '7');
CREATE AGGREGATE enemy.sum(numeric) (SFUNC = enemy.seven, STYPE = numeric, INITCOND = '0');
CREATE AGGREGATE enemy.sum(bigint) (SFUNC = enemy.seven, STYPE = numeric, INITCOND = '0');
"""


def cells(data, name):
    return np.concatenate([chunk[name] for chunk in open_rows(data).chunks((name,), 50)])


def releases(data):
    with dp.simulation(seed=1):
        table = dp.dp_table("~ g", data, codebook=BOOK, eps=50)
        line = dp.dp_lm("x ~ g", data, codebook=BOOK, eps=50, delta=1e-6)
    return table.tidy().to_string(), line.params.to_dict()


def changes(data, name="x"):
    source = open_rows(data)
    list(source.chunks((name,), 50))
    with pytest.raises(FrameError, match="changed between two readings"):
        list(source.chunks((name,), 50))


def test_a_macro_of_duckdb_counts_no_rows(tmp_path):
    expected = []
    for name in ("honest", "enemy"):
        path = tmp_path / f"{name}.duckdb"
        to_duckdb(path, "visits", COLUMNS, TYPES)
        with duckdb.connect(str(path)) as connection:
            if name == "enemy":
                connection.execute("CREATE MACRO count_star() AS 7")
                connection.execute("CREATE MACRO current_setting(x) AS 'false'")
                connection.execute("CREATE MACRO current_database() AS 'none'")
            relation = connection.sql("FROM visits")
            expected.append((releases(relation), open_rows(relation).nrows))
        expected.append((releases(dp.sql(path, "visits")), open_rows(dp.sql(path, "visits")).nrows))
    assert all(one == expected[0] for one in expected)
    assert expected[0][1] == 120


def test_a_path_of_schemas_hides_no_function_of_postgresql(postgres):
    to_postgres(postgres, "shadowed", COLUMNS, TYPES)
    with psycopg.connect(postgres) as connection:
        connection.execute(SHADOWS)
    path = "&options=-c%20search_path%3Denemy,public,pg_catalog"
    honest, enemy = (dp.sql(url, "shadowed") for url in (postgres, postgres + path))
    assert open_rows(enemy).nrows == 120
    assert releases(enemy) == releases(honest)
    with closing(psycopg.connect(postgres + path, autocommit=True)) as connection:
        before = connection.execute("SHOW search_path").fetchone()
        assert releases(dp.sql(connection, "shadowed")) == releases(honest)
        assert connection.execute("SHOW search_path").fetchone() == before
        connection.execute("SELECT set_config('search_path', '', false)")
        assert releases(dp.sql(connection, "shadowed", schema="public")) == releases(honest)


def test_a_policy_that_chooses_other_rows_in_each_pass(postgres):
    to_postgres(postgres, "guarded", COLUMNS, TYPES)
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT SELECT ON guarded TO guest")
        connection.execute("ALTER TABLE guarded ENABLE ROW LEVEL SECURITY")
        connection.execute("CREATE POLICY half ON guarded USING (random() < 0.5)")
    # No policy binds the owner
    assert len(cells(dp.sql(postgres, "guarded"), "x")) == 120
    changes(dp.sql(postgres.replace("postgres@", "guest@"), "guarded"))


def test_a_foreign_table_that_inherits_is_no_stored_one(postgres, tmp_path):
    to_postgres(postgres, "parent", COLUMNS, TYPES)
    with psycopg.connect(postgres) as connection:
        if not connection.execute(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'file_fdw'"
        ).fetchone():
            pytest.skip("PostgreSQL has no file_fdw")
        connection.execute("CREATE EXTENSION IF NOT EXISTS file_fdw")
        connection.execute(
            "CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw;"
            "CREATE FOREIGN TABLE child () INHERITS (parent) SERVER files "
            "OPTIONS (program 'echo 0.$RANDOM$RANDOM,a', format 'csv')"
        )
    assert not open_rows(dp.sql(postgres, "parent")).query.is_snapshot
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP EXTENSION file_fdw CASCADE")
    assert open_rows(dp.sql(postgres, "parent")).query.is_snapshot


def test_columns_that_are_computed_when_they_are_read(tmp_path):
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (g INTEGER, x DOUBLE AS (random()))")
        connection.execute("INSERT INTO visits SELECT range FROM range(100)")
    changes(dp.sql(tmp_path / "v.duckdb", "visits"))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("chance", 1, lambda _: random.random(), deterministic=True)
        connection.execute("CREATE TABLE visits (g, x AS (chance(g)))")
        connection.executemany("INSERT INTO visits VALUES (?)", [(at,) for at in range(100)])
        connection.commit()
        changes(dp.sql(connection, "visits"))


def test_a_virtual_table_of_sqlite_is_a_query():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE visits USING rtree(id, low, high)")
        connection.execute("INSERT INTO visits VALUES (1, 0.25, 0.5)")
        connection.commit()
        assert not open_rows(dp.sql(connection, "visits")).query.is_snapshot
        assert cells(dp.sql(connection, "visits"), "low").tolist() == [0.25]
