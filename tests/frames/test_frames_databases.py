"""Tables in databases: what is refused before a charge, what stops a pass, what is never shown."""

import gc
import pickle
import sqlite3
import traceback
from contextlib import closing

import duckdb
import numpy as np
import polars as pl
import pytest
from postgres_server import to_duckdb, to_postgres, to_sqlite

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FrameError, PrivacyError
from dpmodels.frames import open_rows, to_codes, to_float
from dpmodels.frames.engine import double_quoted, kind_of_type
from dpmodels.frames.protocol import ANY, Holds

psycopg = pytest.importorskip("psycopg")
BOOK = dp.codebook(x=(0, 1), g=["a", "b"])
COLUMNS = {"x": [0.25, 0.5, None, 0.75] * 30, "g": list("abab") * 30, "id": list(range(60)) * 2}
TYPES = {"x": "DOUBLE PRECISION", "g": "VARCHAR", "id": "BIGINT"}
CELL = "quokka-of-rottnest"


@pytest.fixture
def visits(postgres):
    """The URL of a server with a fresh table."""
    to_postgres(postgres, "visits", COLUMNS, TYPES)
    return postgres


@pytest.fixture(params=["duckdb", "sqlite", "postgresql"])
def table(request, tmp_path):
    """How to name a table of each engine."""
    if request.param == "duckdb":
        to_duckdb(tmp_path / "v.duckdb", "visits", COLUMNS, TYPES)
        return lambda name: dp.sql(tmp_path / "v.duckdb", name)
    if request.param == "sqlite":
        to_sqlite(tmp_path / "v.db", "visits", COLUMNS)
        return lambda name: dp.sql(tmp_path / "v.db", name)
    url = request.getfixturevalue("visits")
    return lambda name: dp.sql(url, name)


def _mean(data, **kwargs):
    with dp.simulation(seed=2):
        return dp.dp_mean("x ~ g", data, codebook=BOOK, eps=1.0, **kwargs)


def _sessions(url, but=0):
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid()"
        ).fetchall()
    return [pid for (pid,) in rows if pid != but]


def _refused(call, error=FrameError):
    ledger = dp.Ledger(eps=10.0)
    with pytest.raises(error) as caught:
        call(ledger)
    assert not ledger.entries
    return str(caught.value)


@pytest.mark.product
def test_a_table_or_column_that_does_not_exist(table):
    message = _refused(lambda ledger: _mean(table("visit"), ledger=ledger))
    assert "did you mean 'visits'?" in message
    book = dp.codebook(y=(0, 1))
    message = _refused(
        lambda ledger: dp.dp_mean("~ y", table("visits"), codebook=book, eps=1, ledger=ledger)
    )
    assert "no column 'y'" in message


def test_counts_names_and_engine(table):
    source = open_rows(table("visits"))
    assert (source.names, source.nrows, source.rereadable) == (("x", "g", "id"), 120, True)
    assert source.engine.dialect in ("duckdb", "sqlite", "postgresql")
    assert double_quoted('a"b') == '"a""b"'
    (batch,) = source.engine.batches(f"SELECT count(*) AS n FROM {source.engine.table}", 10)
    assert batch.column(0).to_pylist() == [120]
    assert list(source.engine.types) == ["x", "g", "id"]


def test_types_that_hold_nothing_are_refused_before_the_charge(postgres, tmp_path):
    to_postgres(postgres, "typed", {"x": [], "g": []}, {"x": "jsonb", "g": "text[]"})
    to_duckdb(tmp_path / "t.duckdb", "typed", {"x": [], "g": []}, {"x": "JSON", "g": "VARCHAR[]"})
    for data in (dp.sql(postgres, "typed"), dp.sql(tmp_path / "t.duckdb", "typed")):
        message = _refused(lambda ledger, data=data: _mean(data, ledger=ledger))
        assert "'x' is of type json" in message.lower()


@pytest.mark.parametrize(
    ("declared", "holds"),
    [
        ("numeric(12,2)", Holds.ANYTHING),
        ("ENUM('date', 'x[]')", Holds.ANYTHING),
        ("timestamp(3) without time zone", Holds.DAYS),
        ("character varying(10)", Holds.ANYTHING),
        ("UHUGEINT", Holds.WHOLE),
        ("INTEGER[3]", Holds.NOTHING),
        ("VARCHAR(3)[]", Holds.NOTHING),
        ("STRUCT(a INTEGER)[]", Holds.NOTHING),
        ("interval", Holds.NOTHING),
        ("time without time zone", Holds.NOTHING),
        ("int4range", Holds.NOTHING),
        ("geometry(Point,4326)", Holds.NOTHING),
    ],
)
def test_kinds_of_declared_types(declared, holds):
    assert kind_of_type(declared).holds is holds


def test_types_of_a_query_follow_from_cells_and_are_not_read(tmp_path):
    """A cell of a CSV file makes a column text in DuckDB: neither a refusal nor a plan shows it."""
    sources = []
    for number, cell in enumerate(("3", "odd")):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"x\n1\n2\n{cell}\n")
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW v AS SELECT * FROM read_csv_auto('{path}')")
        sources += [connection.sql(f"FROM read_csv_auto('{path}')"), dp.sql(connection, "v")]
    kinds = {open_rows(source).kind("x") for source in sources}
    assert kinds == {ANY}
    book = dp.codebook(x=(0, 9))
    fits = [dp.dp_mean("~ x", source, codebook=book, eps=1.0) for source in sources]
    assert len({fit.release.info.name for fit in fits}) == 1


@pytest.mark.product
def test_a_private_codebook_reads_the_types_of_a_database(tmp_path):
    path = str(tmp_path / "rows.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT i % 90 AS x, 'a' AS g FROM range(3000) r(i)")
    fit = dp.dp_mean("~ x", dp.sql(path, "t"), codebook="private", eps=2.0)
    assert fit.request.codebook["x"].lower >= -1_000
    with pytest.raises(CodebookError, match="not public"):
        dp.dp_mean("~ x", duckdb.sql("SELECT 1 AS x"), codebook="private", eps=2.0)


def test_dates_decimals_and_domains(postgres):
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE IF EXISTS dated CASCADE; DROP DOMAIN IF EXISTS score")
        connection.execute("CREATE DOMAIN score AS numeric(30, 20)")
        connection.execute(
            "CREATE TABLE dated (day date, at timestamp with time zone, local timestamp, "
            "price score, r real, c char(3), b boolean)"
        )
        connection.execute(
            "INSERT INTO dated VALUES ('2001-02-03', '2001-02-03 23:30-05', '2001-02-03 23:30', "
            "0.1, 0.1, 'F', true), ('infinity', '-infinity', '0044-03-15 BC', 'NaN', 'NaN', '', "
            "null), ('20010-01-01', null, null, 1e9, '-0', null, false)"
        )
    source = open_rows(dp.sql(postgres, "dated"))
    (chunk,) = source.chunks(source.names, 10)
    days = ["2001-02-03", "NaT", "NaT"]
    assert chunk["day"].astype(str).tolist() == days
    assert chunk["local"].astype(str).tolist() == days
    assert chunk["at"].astype(str).tolist() == ["2001-02-04", "NaT", "NaT"]
    assert [float(cell) for cell in chunk["price"]][::2] == [0.1, 1e9]
    assert chunk["r"][0] == np.float64(np.float32(0.1))
    assert chunk["c"].tolist() == ["F", "", None]
    assert chunk["b"].tolist() == [True, None, False]


def test_a_row_of_nothing_but_null_is_a_row(postgres):
    to_postgres(postgres, "empty", {"x": [None, 0.5, None]}, {"x": "DOUBLE PRECISION"})
    (chunk,) = open_rows(dp.sql(postgres, "empty")).chunks(("x",), 10)
    assert np.isnan(chunk["x"]).tolist() == [True, False, True]


@pytest.mark.expensive
def test_long_texts_do_not_stop_a_pass(postgres):
    longest = "é" * 200_000
    to_postgres(postgres, "long", {"x": [longest, longest + "!", "a"] * 3}, {"x": "TEXT"})
    cells = [
        c for chunk in open_rows(dp.sql(postgres, "long")).chunks(("x",), 4) for c in chunk["x"]
    ]
    assert len(cells) == 9
    assert len(set(cells)) == 3
    assert max(map(len, cells)) < 70_000


def test_a_user_without_rights(visits):
    with psycopg.connect(visits) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("REVOKE ALL ON visits FROM PUBLIC")
    url = visits.replace("postgres@", "reader@")
    assert "no right" in _refused(lambda ledger: _mean(dp.sql(url, "visits"), ledger=ledger))
    with psycopg.connect(visits) as connection:
        connection.execute("GRANT SELECT (g) ON visits TO reader")
    assert "column 'x'" in _refused(lambda ledger: _mean(dp.sql(url, "visits"), ledger=ledger))
    with psycopg.connect(visits) as connection:
        connection.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.product
@pytest.mark.parametrize("begun", [True, False])
def test_a_connection_that_is_lost_in_a_pass(visits, begun):
    with psycopg.connect(visits, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW large AS "
            "SELECT 1.5 + i AS x FROM generate_series(1, 2000) s(i), generate_series(1, 1000)"
            if begun
            else "CREATE OR REPLACE VIEW large AS SELECT x FROM visits"
        )
        source = open_rows(dp.sql(visits, "large"))
        chunks = source.chunks(("x",), 100)
        if begun:
            next(chunks)
        for pid in _sessions(visits, but=connection.info.backend_pid):
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        with pytest.raises(FrameError, match=r"connection .* was lost.*Nothing was released"):
            list(chunks)
        connection.execute("DROP VIEW large")


@pytest.mark.expensive
def test_a_slow_statement_is_stopped(visits):
    with psycopg.connect(visits) as connection:
        connection.execute("CREATE OR REPLACE VIEW slow AS SELECT x, g FROM visits, pg_sleep(30)")
    ledger = dp.Ledger(eps=10.0)
    message = _refused(lambda _: _mean(dp.sql(visits, "slow", timeout=0.2), ledger=ledger))
    assert "timeout=" in message
    assert "Nothing was charged" in message  # The number of rows is public, and counted first


def test_errors_of_a_database_quote_no_cell(visits):
    with psycopg.connect(visits) as connection:
        connection.execute(
            f"CREATE OR REPLACE VIEW broken AS SELECT (g || '{CELL}')::int AS x, g FROM visits"
        )
    ledger = dp.Ledger(eps=10.0, adjacency="add-remove")
    with pytest.raises(FrameError) as caught:
        _mean(dp.sql(visits, "broken"), ledger=ledger, adjacency="add-remove")
    text = "".join(traceback.format_exception(caught.value))
    assert CELL not in text
    assert "Nothing was released. A ledger is charged" in text
    assert caught.value.__context__ is None
    assert len(ledger.entries) == 1


def test_a_view_that_changes_between_passes(visits):
    with psycopg.connect(visits) as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW moving AS SELECT x + random() AS x, g FROM visits"
        )
    source = open_rows(dp.sql(visits, "moving"))
    list(source.chunks(("g",), 50))
    list(source.chunks(("x", "g"), 50))
    with pytest.raises(FrameError, match=r"changed between two readings.*Nothing was released"):
        list(source.chunks(("x",), 50))
    relation = duckdb.connect().sql("SELECT random() AS x FROM range(10)")
    source = open_rows(relation)
    list(source.chunks(("x",), 5))
    with pytest.raises(FrameError, match="changed between two readings"):
        list(source.chunks(("x",), 5))


def test_all_passes_see_one_state(visits):
    source = open_rows(dp.sql(visits, "visits"))
    with psycopg.connect(visits) as connection:
        connection.execute(
            "UPDATE visits SET x = 1 WHERE id < 20; DELETE FROM visits WHERE id = 30"
        )
    first = np.concatenate([chunk["x"] for chunk in source.chunks(("x",), 7)])
    assert (source.nrows, len(first), np.nanmax(first)) == (120, 120, 0.75)
    with psycopg.connect(visits) as connection:
        connection.execute("INSERT INTO visits VALUES (0.1, 'a', 7)")
    again = np.concatenate([chunk["x"] for chunk in source.chunks(("x", "g"), 7)])
    np.testing.assert_array_equal(first, again)


@pytest.mark.expensive
def test_the_transaction_ends_with_the_fit(visits):
    before = len(_sessions(visits))
    for _ in range(2):
        _mean(dp.sql(visits, "visits"))
        with pytest.raises(FrameError):
            dp.dp_mean("~ z", dp.sql(visits, "visits"), codebook=dp.codebook(z=(0, 1)), eps=1)
    gc.collect()
    assert len(_sessions(visits)) <= before


def test_a_connection_of_the_user_stays_as_it_was(visits, tmp_path):
    to_sqlite(tmp_path / "v.db", "visits", COLUMNS)
    with psycopg.connect(visits) as connection, closing(sqlite3.connect(tmp_path / "v.db")) as lite:
        factory = lite.text_factory
        fits = [_mean(dp.sql(opened, "visits")) for opened in (connection, lite)]
        assert str(fits[0]) == str(fits[1])
        assert connection.info.transaction_status.name == "IDLE"
        assert (lite.in_transaction, lite.text_factory) == (False, factory)
        connection.execute("INSERT INTO visits VALUES (0.1, 'a', 7)")
        assert "transaction" in _refused(lambda _: _mean(dp.sql(connection, "visits")))
        assert connection.execute("SELECT count(*) FROM visits").fetchone() == (121,)
        lite.execute("INSERT INTO visits VALUES (0.1, 'a', 7)")
        assert "transaction" in _refused(lambda _: _mean(dp.sql(lite, "visits")))
        connection.rollback()


@pytest.mark.expensive
def test_duckdb_open_for_writing(tmp_path):
    to_duckdb(tmp_path / "v.duckdb", "visits", COLUMNS, TYPES)
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        message = _refused(lambda _: _mean(dp.sql(tmp_path / "v.duckdb", "visits")))
        assert "dp.sql(connection" in message
        assert str(_mean(dp.sql(connection, "visits"))) == str(_mean(connection.table("visits")))


@pytest.mark.expensive
def test_persons_and_splits_of_a_query_have_one_order(tmp_path):
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i % 500 AS id, i / 5000 AS x FROM range(5000) r(i)"
    )
    relation = connection.sql("SELECT id, max(x) AS x FROM t GROUP BY id, x")
    book = dp.codebook(x=(0, 1))
    for _ in range(3):
        fit = dp.dp_mean("~ x", relation, codebook=book, eps=1, person="id", rows=3)
        assert fit.params.notna().all()
    lazy = pl.LazyFrame({"id": [1, 2, 3] * 50, "x": [0.1, 0.2, 0.3] * 50}).group_by("x", "id").len()
    assert dp.dp_mean("~ x", lazy, codebook=book, eps=1, person="id", rows="mean").params.size == 1


def test_cells_of_sqlite_are_read_one_by_one(tmp_path):
    cells = [1, "1.0", 1.5, b"F", None, "x", 2**53 + 1, 3.0]
    to_sqlite(tmp_path / "m.db", "m", {"c": cells})
    source = open_rows(dp.sql(tmp_path / "m.db", "m"))
    for block_rows in (1, 3, 8):
        chunks = [chunk["c"] for chunk in source.chunks(("c",), block_rows)]
        numbers = np.concatenate([to_float(chunk) for chunk in chunks])
        expected = to_float(np.fromiter(cells, object))
        np.testing.assert_array_equal(numbers, expected)
    bad = tmp_path / "bad.db"
    with closing(sqlite3.connect(bad)) as connection:
        connection.execute("CREATE TABLE t (c)")
        connection.execute("INSERT INTO t VALUES (CAST(x'46ff' AS TEXT))")
        connection.commit()
    (chunk,) = open_rows(dp.sql(bad, "t")).chunks(("c",), 3)
    assert chunk["c"].tolist() == [b"F\xff"]
    assert to_codes(chunk["c"], ("F\ufffd",)).tolist() == [0]


def test_one_table_at_two_sites(tmp_path):
    to_sqlite(tmp_path / "v.db", "visits", COLUMNS)
    sites = {
        "A": dp.sql(tmp_path / "v.db", "visits"),
        "B": f"sqlite:///{tmp_path}/v.db?table=visits",
    }
    message = _refused(lambda _: _mean(None, sites=sites, protocol="pooled"))
    assert "given twice" in message


# Names of databases.

PASSWORD = "sw0rdfish"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:{PASSWORD}@localhost:1/clinic?table=visits&connect_timeout=1",
        f"postgresql://ana@localhost:1/clinic?password={PASSWORD}&table=visits",
        f"postgres://ana:{PASSWORD}@localhost:1,localhost:2/clinic?table=visits",
    ],
)
def test_a_password_is_nowhere_shown(url):
    data = dp.sql(url)
    message = _refused(lambda ledger: _mean(data, ledger=ledger))
    message += _refused(lambda ledger: _mean(url, ledger=ledger))
    message += _refused(lambda _: dp.session(url, codebook=BOOK, eps=1))
    assert PASSWORD not in repr(data) + str(data) + message
    assert data.password == PASSWORD
    with pytest.raises(PrivacyError):
        pickle.dumps(data)


@pytest.mark.expensive
def test_a_password_is_in_no_result(visits, tmp_path):
    url = visits.replace("postgres@", f"postgres:{PASSWORD}@") + "&table=visits"
    ledger = dp.Ledger(eps=10.0)
    fit = _mean(url, ledger=ledger)
    session = dp.session(url, codebook=BOOK, eps=1)
    fit.save(tmp_path / "fit.json")
    printed = [
        fit.summary(),
        fit.request,
        session,
        session.mean("x ~ g", eps=0.1),
        ledger,
        ledger.entries,
    ]
    printed += [ledger.entries[0], (tmp_path / "fit.json").read_bytes()]
    assert all(PASSWORD not in text for value in printed for text in (str(value), repr(value)))


@pytest.mark.parametrize(
    ("database", "kwargs", "says"),
    [
        ("postgresql://host/db", {}, "?table=visits"),
        ("mysql://host/db", {"table": "t"}, "expected"),
        ("postgresq://h/db", {"table": "t"}, "did you mean"),
        ("sqlite://rows.db", {"table": "t"}, "sqlite:///rows"),
        ("rows.xlsx", {"table": "t"}, "does not name a database"),
        (object(), {"table": "t"}, "type object"),
        ("rows.db", {"table": "t", "timeout": -1}, "positive"),
        ("rows.db", {"table": 3}, "not named"),
    ],
)
def test_what_names_no_table(database, kwargs, says):
    with pytest.raises(ArgumentError) as caught:
        dp.sql(database, **kwargs)
    assert says in str(caught.value)


def test_files_that_are_not_databases(tmp_path):
    assert "no file" in _refused(lambda _: _mean(dp.sql(tmp_path / "none.db", "t")))
    (tmp_path / "x.db").write_bytes(b"not a database" * 100)
    (tmp_path / "x.duckdb").write_bytes(b"not a database" * 1000)
    assert "integrity_check" in _refused(lambda _: _mean(dp.sql(tmp_path / "x.db", "t")))
    assert "cannot be opened" in _refused(lambda _: _mean(dp.sql(tmp_path / "x.duckdb", "t")))
