"""Settings and encodings of a server: none of them lets a cell decide whether rows are read."""

import datetime as dt
import gc
from contextlib import closing

import numpy as np
import pytest
from postgres_server import to_postgres

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, to_codes
from dpmodels.frames.persons import person_keys
from dpmodels.frames.protocol import decoded

psycopg = pytest.importorskip("psycopg")

CELLS = {
    "day": [dt.date(2020, 2, 13), None, dt.date(1999, 12, 31)],
    "text": ["€", "ł", "a"],
    "number": [1 / 3, None, 1e-300],
}
TYPES = {"day": "date", "text": "text", "number": "double precision"}
# What a user, a role or a database may set, by which a cell then failed the pass.
SETTINGS = {
    "datestyle=German": "day",
    "datestyle=SQL,DMY": "day",
    "client_encoding=LATIN1": "text",
    "client_encoding=SJIS": "text",
    "client_encoding=SQL_ASCII": "text",
    "extra_float_digits=-15": "number",
}


def cells_of(data, name):
    """All cells of a column; the transaction ends with the source."""
    chunks = list(open_rows(data).chunks((name,), 100))
    gc.collect()
    return [cell for chunk in chunks for cell in decoded(chunk[name]).tolist()]


@pytest.fixture(scope="module")
def visits(postgres):
    to_postgres(postgres, "set_visits", CELLS, TYPES)
    return postgres


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_fails_no_cell(visits, setting):
    url = f"{visits}&options=-c%20{setting.replace('=', '%3D')}"
    name = SETTINGS[setting]
    expected = cells_of(dp.sql(visits, "set_visits"), name)
    assert str(expected) == str(cells_of(dp.sql(url, "set_visits"), name))
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        show = f"SHOW {setting.partition('=')[0]}"
        before = connection.execute(show).fetchone()
        assert str(expected) == str(cells_of(dp.sql(connection, "set_visits"), name))
        assert connection.execute(show).fetchone() == before


def in_encoding(url, encoding, cells):
    """The URL of a new database that holds texts in an encoding, as bytes of it."""
    name = f"in_{encoding}".lower()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 "
            "LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    there = url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(f"{there}&client_encoding={encoding}") as connection:
        connection.execute("CREATE TABLE visits (text text)")
        with connection.cursor().copy("COPY visits FROM STDIN") as copy:
            copy.write(b"\n".join([*cells, b""]))
    return there


# 0x81 is no character of Windows-1252, so that its text cannot be converted.
@pytest.mark.parametrize(
    ("encoding", "cells"),
    [("WIN1252", [b"a", b"\xe9", b"\x81", b"\x8d"]), ("EUC_JP", [b"a", b"\xa4\xa2"])],
)
def test_text_of_other_encodings(postgres, encoding, cells):
    url = in_encoding(postgres, encoding, cells)
    (chunk,) = open_rows(dp.sql(url, "visits")).chunks(("text",), 100)
    codes = to_codes(chunk["text"], ("a", "é", "あ"))
    known = {b"a": 0, b"\xe9": 1, b"\xa4\xa2": 2}
    assert codes.tolist() == [known.get(cell, -1) for cell in cells]
    keys = person_keys(chunk["text"], bytes(24))
    assert keys.has_id.all()
    assert len(np.unique(keys.high)) == len(cells)


def test_a_database_without_an_encoding_is_refused_before_the_charge(postgres):
    url = in_encoding(postgres, "SQL_ASCII", [b"a", b"\xe9"])
    ledger = dp.Ledger(eps=1.0)
    book = dp.codebook(text=["a", "b"])
    for given in (url, f"{url}&client_encoding=UTF8"):
        with pytest.raises(FrameError, match="has no encoding"):
            dp.dp_table("~ text", dp.sql(given, "visits"), codebook=book, eps=1, ledger=ledger)
    assert not ledger.entries
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with closing(dbapi.connect(url)) as connection:
        assert cells_of(dp.sql(connection, "visits"), "text") == [b"a", b"\xe9"]
