"""What a database declares about the columns of a table, beside their types; never a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpmodels.frames.engine import Engine

_POSTGRES: Final = """
SELECT a.attname::text AS name, pg_catalog.col_description(a.attrelid, a.attnum) AS comment,
(SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder)
    FROM pg_catalog.pg_enum e WHERE e.enumtypid = a.atttypid) AS levels,
(SELECT string_agg(pg_catalog.pg_get_constraintdef(c.oid), ' AND ') FROM pg_catalog.pg_constraint c
    WHERE c.contype = 'c' AND (c.contypid = a.atttypid AND a.atttypid <> 0
    OR c.conrelid = a.attrelid AND c.conkey = ARRAY[a.attnum])) AS checks
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped"""
_DUCKDB: Final = """
SELECT c.column_name AS name, c.comment AS comment, c.data_type AS levels,
(SELECT string_agg(k.constraint_text, ' AND ') FROM duckdb_constraints() k
    WHERE k.schema_name = c.schema_name AND k.table_name = c.table_name
    AND k.constraint_type = 'CHECK'
    AND list_distinct(k.constraint_column_names) = [c.column_name]) AS checks
FROM duckdb_columns() c WHERE {table} = '"' || replace(c.schema_name, '"', '""') || '"."'
    || replace(c.table_name, '"', '""') || '"'"""
_QUERIES: Final = {"postgresql": _POSTGRES, "duckdb": _DUCKDB}


def declarations(engine: Engine) -> dict[str, Mapping[str, str | None]]:
    """Return type, comment, levels (of ENUM types) and checks by column, as SQL texts.

    SQLite declares types alone.
    """
    columns: dict[str, Mapping[str, str | None]] = {
        name: {"type": declared} for name, declared in engine.columns().items()
    }
    if engine.dialect in _QUERIES:
        table = "'" + engine.table.replace("'", "''") + "'"
        for batch in engine.batches(_QUERIES[engine.dialect].format(table=table), 1000):
            for row in batch.to_pylist():
                columns[row["name"]] = {**row, **columns[row["name"]]}
    return columns
