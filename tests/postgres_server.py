"""A server of PostgreSQL for the tests, in a temporary folder, and tables written to databases."""

import ctypes
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

URL = "postgresql://postgres@/postgres?host={folder}"


def binaries() -> Path | None:
    """The folder of the newest server that is installed, as Debian has it, or on the path."""
    on_path = shutil.which("initdb")
    folders = sorted(glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    return Path(folders[-1]) if folders else Path(on_path).parent if on_path else None


@contextmanager
def running() -> Iterator[str]:
    """Start a server, give its URL, stop it and remove its folder; skip without one."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    psycopg = pytest.importorskip("psycopg")
    user: dict[str, Any] = {}
    # TMPDIR may be closed to other users, or too long for the path of a socket
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if os.getuid() == 0:  # initdb refuses root
        entry = next(pwd.getpwnam(name) for name in ("postgres", "nobody") if _exists(name))
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    server = None
    try:
        data = folder / "data"
        init = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        if subprocess.run([*init, "--locale=C", "-N"], check=False, **quiet, **user).returncode:
            pytest.skip("PostgreSQL is installed, but initdb cannot make a cluster on this machine")
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=30"]
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, *options],
            preexec_fn=_end_with_the_tests,
            **quiet,
            **user,
        )
        url = URL.format(folder=folder)
        for _ in range(200):
            with suppress(psycopg.OperationalError), psycopg.connect(url):
                break
            time.sleep(0.05)
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_the_tests() -> None:
    """Ask Linux to stop the server where the tests are killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


def _exists(name: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create(types: dict[str, str], table: str) -> str:
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
    return f"CREATE TABLE {quoted(table)} ({columns})"


def to_postgres(url: str, table: str, columns: dict[str, list[Any]], types: dict[str, str]) -> None:
    """Write columns as a new table."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '5s'")
        cursor.execute(f"DROP TABLE IF EXISTS {quoted(table)} CASCADE")
        cursor.execute(create(types, table))
        with cursor.copy(f"COPY {quoted(table)} FROM STDIN") as copy:
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)


def to_sqlite(path: Path, table: str, columns: dict[str, list[Any]]) -> None:
    """Write columns, without types, as a new table."""
    connection = sqlite3.connect(path)
    connection.execute(create(dict.fromkeys(columns, ""), table))
    marks = ", ".join("?" * len(columns))
    rows = zip(*columns.values(), strict=True)
    connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", rows)
    connection.commit()
    connection.close()


def to_duckdb(path: Path, table: str, columns: dict[str, list[Any]], types: dict[str, str]) -> None:
    """Write columns as a new table."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute(create(types, table))
        rows = pa.table([pa.array(cells) for cells in columns.values()], names=list(columns))
        connection.register("rows_to_write", rows)
        connection.execute(f"INSERT INTO {quoted(table)} SELECT * FROM rows_to_write")
