"""Tables with hostile cells and damaged files, drawn at random, for every kind of container."""

import decimal
import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


class Hostile:
    """A cell whose every conversion raises."""

    def _raises(self, *_: object) -> NoReturn:
        raise RuntimeError("quokka")

    __str__ = __repr__ = __float__ = __int__ = __index__ = __eq__ = __lt__ = _raises
    __hash__ = __bool__ = __len__ = __iter__ = __array__ = __complex__ = _raises  # type: ignore


class HostileText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("quokka")

    __hash__ = __str__ = __repr__ = __float__ = strip = encode = __eq__  # type: ignore


CELLS: tuple[Callable[[Random], Any], ...] = (
    lambda rng: rng.random(),
    lambda rng: rng.randrange(5),
    lambda rng: rng.choice(
        ["x", "y", "", " ", "NA", "nan", "1e999", "0x10", "1_000", "\N{ARABIC-INDIC DIGIT ONE}"]
    ),
    lambda rng: rng.choice(["\ud800", "a\x00b", "\ufeff1", "x\r\ny", '"', "e\u0301", "z" * 2_000]),
    lambda rng: rng.choice([10**400, -(10**400), 2**63, 2**64, -0.0, 5e-324]),
    lambda rng: rng.choice([float("nan"), float("inf"), -float("inf"), 1e308, 1j, None]),
    lambda rng: rng.choice(
        [[1, 2], {"a": 1}, {1}, (), b"\xff\xfe", bytearray(b"1"), memoryview(b"1")]
    ),
    lambda rng: rng.choice([Hostile(), HostileText("x"), object(), type, len, Ellipsis]),
    lambda rng: rng.choice(
        [pd.NaT, pd.NA, np.datetime64("NaT", "us"), np.ma.masked, pd.Timestamp(0)]
    ),
    lambda rng: rng.choice(
        [decimal.Decimal("sNaN"), decimal.Decimal("1e999"), np.float16(1), np.array(1)]
    ),
    lambda rng: rng.choice(
        [True, False, np.bool_(True), np.str_("x"), np.bytes_(b"y"), np.array([1, 2])]
    ),
)
TAME = CELLS[:3]


def cells(rng: Random, n_rows: int) -> list[Any]:
    """Draw a column: of one kind of cell, or of all."""
    kinds = rng.choice([CELLS, [rng.choice(CELLS)], TAME])
    return [rng.choice(kinds)(rng) for _ in range(n_rows)]


def columns(rng: Random) -> dict[str, list[Any]]:
    n_rows = rng.choice([0, 1, 2, 7, 30])
    return {name: cells(rng, n_rows) for name in ("a", "g", "id")}


def objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for place, cell in enumerate(values):
        array[place] = cell
    return array


def ragged(rng: Random, folder: Path) -> Any:
    table: dict[Any, Any] = dict(columns(rng))
    table[rng.choice([*table])] = rng.choice(
        [[], [1], [1] * 40, None, 3, "text", Hostile(), iter([1])]
    )
    if rng.random() < 0.2:
        table[rng.choice([None, 1, ("a",), Hostile])] = [1]
    return table


def frame(rng: Random, folder: Path) -> Any:
    values_by_name = {
        name: pd.Series(objects(cells), dtype=object) for name, cells in columns(rng).items()
    }
    return pd.DataFrame(values_by_name)


def typed_frame(rng: Random, folder: Path) -> Any:
    """A pandas frame of whatever types its cells convert to."""
    table = frame(rng, folder)
    for name in table:
        kind = rng.choice(
            ["category", "string", "Int64", "boolean", "datetime64[ns]", "float32", "Sparse[float]"]
        )
        try:
            table[name] = table[name].astype(kind)
        except Exception:
            table[name] = pd.Series([pd.NA] * len(table), dtype="Int64")
    if rng.random() < 0.2:
        table.index = pd.Index([0] * len(table))
    return table


def masked(rng: Random, folder: Path) -> Any:
    result = columns(rng)
    n_rows = len(result["a"])
    mask = [rng.random() < 0.3 for _ in range(n_rows)]
    result["a"] = np.ma.array(np.array([rng.random() for _ in range(n_rows)]), mask=mask)
    result["g"] = np.ma.array(objects(result["g"]), mask=mask)
    return result


def structured(rng: Random, folder: Path) -> Any:
    kinds = [
        "f8",
        "O",
        "U3",
        "S2",
        "M8[D]",
        "m8[s]",
        "?",
        "c16",
        "f8,f8",
        "(2,)f8",
        "V3",
        "f2",
        ">i4",
    ]
    kind = [(name, rng.choice(kinds)) for name in ("a", "g", "id")]
    return np.zeros(rng.choice([0, 1, 5]), dtype=kind)


def arrow(rng: Random, folder: Path) -> Any:
    result = {}
    for name, values in columns(rng).items():
        n_rows = len(values)
        kinds = [
            pa.int64(),
            pa.string(),
            pa.large_binary(),
            pa.list_(pa.int8()),
            pa.decimal128(38, 9),
        ]
        kinds += [pa.dictionary(pa.int8(), pa.string()), pa.null(), pa.bool_(), pa.duration("s")]
        kinds += [
            pa.struct([("x", pa.int8())]),
            pa.date64(),
            pa.uint64(),
            pa.float16(),
            pa.time32("s"),
        ]
        kind = rng.choice(kinds)
        try:
            result[name] = pa.array(values, kind)
        except Exception:
            result[name] = pa.nulls(n_rows, kind)
    table = pa.table(result)
    return table.slice(len(table) // 2) if rng.random() < 0.3 else table


def polars(rng: Random, folder: Path) -> Any:
    try:
        return pl.from_arrow(arrow(rng, folder))
    except BaseException:
        return pl.DataFrame({"a": [1.0], "g": ["x"], "id": [1]})


def parquet(rng: Random, folder: Path) -> Any:
    """A Parquet file with bits flipped, a piece cut out, or its end missing."""
    path = folder / "rows.parquet"
    buffer = io.BytesIO()
    try:
        pq.write_table(arrow(rng, folder), buffer)
    except Exception:
        pq.write_table(pa.table({"a": [0.5, None], "g": ["x", "y"], "id": [1, 2]}), buffer)
    path.write_bytes(damaged(rng, buffer.getvalue()))
    return path


def delimited(rng: Random, folder: Path) -> Any:
    path = folder / "rows.csv"
    texts = [
        "0.5",
        "x",
        "",
        '"',
        '"x\ny"',
        '""',
        "a,b",
        "\x00",
        "é",
        "\r",
        "1e999",
        "'",
        '"x"y',
        "\ufeff",
    ]
    rows = [
        [rng.choice(texts) for _ in range(rng.choice([3, 3, 3, 1, 7]))]
        for _ in range(rng.randrange(9))
    ]
    text = "\n".join(",".join(row) for row in [["a", "g", "id"], *rows])
    path.write_bytes(
        damaged(
            rng, text.encode(rng.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"]), "replace")
        )
    )
    return path


def damaged(rng: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([0, 1, 3])):
        match rng.randrange(4):
            case 0 if changed:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            case 1:
                del changed[rng.randrange(len(changed) + 1) :]
            case 2 if changed:
                start = rng.randrange(len(changed))
                del changed[start : start + rng.randrange(20)]
            case 3:
                start = rng.randrange(len(changed) + 1)
                changed[start:start] = rng.randbytes(rng.randrange(8))
    return bytes(changed)


def stream(rng: Random, folder: Path) -> Any:
    makers = [
        frame,
        masked,
        ragged,
        typed_frame,
        lambda *_: rng.choice([None, 1, "text", Hostile()]),
    ]
    tables = [rng.choice(makers)(rng, folder) for _ in range(rng.randrange(4))]
    return rng.choice([iter, list, tuple])(tables)


CONTAINERS = (
    ragged,
    frame,
    typed_frame,
    masked,
    structured,
    arrow,
    polars,
    parquet,
    delimited,
    stream,
)
