"""Rows that a database groups or adds up give the integers that a frame gives, bit for bit."""

import sqlite3
from datetime import date
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from postgres_server import to_postgres

import dpmodels as dp
from dpmodels.design import unbound_design
from dpmodels.design.cells import unbound_cells, unbound_levels, unbound_margins
from dpmodels.errors import FrameError
from dpmodels.formula import design
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.tally import Tally, binned, margins
from dpmodels.frames import open_rows
from dpmodels.models.verb_spec import _tally
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.counts import counted_levels, counts, margin_counts
from dpmodels.statistics.moments import moments

duckdb = pytest.importorskip("duckdb")
N_ROWS = 600
LONG = 'a name of sixty-three bytes, quoted " and ; -- with every trick'
TEXTS = ["F", "M", "f", "F ", "", "1", "1.0", "01", "True", "é", "e\u0301", "x'y\\", "F\n", None]
REALS = [0.0, -0.0, 1.0, 2.5, 9.0, -9.0, np.nan, np.inf, -np.inf, 1e300, 5e-324, -1e-310, 1e-80]
LIMITS = [4.1, -3.7, 0.5, 3.0000000000000004, 1e-20, -1e-79]
WHOLE = [0, 1, 2, 3, -1, 99, 7, 2**53 + 1, 2**62, -(2**62), None]
DAYS = [date(1, 1, 1), date(9999, 12, 31), date(1990, 5, 1), date(2000, 2, 29), None]
TYPES = {
    "text": "VARCHAR",
    "real": "DOUBLE PRECISION",
    "other": "DOUBLE PRECISION",
    "whole": "BIGINT",
    "few": "SMALLINT",
    "flag": "BOOLEAN",
    "day": "DATE",
    LONG: "VARCHAR",
}
BOOK = dp.codebook(
    {
        "text": dp.Categorical(["F", "M", "1"], missing=["f"]),
        "real": (-3.7, 4.1),
        "other": dp.Numeric(-5, 5, step=0.1, missing=[0.5]),
        "whole": dp.Integer(0, 7, missing=[3]),
        "few": dp.Categorical([1, 2, 3], missing=[0]),
        "flag": [False, True],
        "day": ("1980-01-01", "2010-12-31"),
        LONG: ["F", "M"],
    }
)


def columns() -> dict[str, list]:
    rng = np.random.default_rng(5)

    def drawn(cells, n_rows=N_ROWS):
        return [cells[at] for at in rng.integers(0, len(cells), n_rows)]

    return {
        "text": drawn(TEXTS),
        "real": drawn([*REALS, *LIMITS, *rng.normal(size=40).tolist()]),
        "other": drawn([*REALS, *LIMITS, *rng.normal(size=40).round(2).tolist()]),
        "whole": drawn(WHOLE),
        "few": drawn([0, 1, 2, 3, None]),
        "flag": drawn([True, False, None]),
        "day": drawn(DAYS),
        LONG: drawn(["F", "M", "N"]),
    }


ROWS = columns()
FRAME = pd.DataFrame({name: np.array(cells, dtype=object) for name, cells in ROWS.items()})


def collated(kind: str, how: str) -> dict[str, str]:
    """Declare text whose collation takes F and f, or e and é, for one."""
    return {name: f"{t} {how}" if t == "VARCHAR" else t for name, t in TYPES.items()}


@pytest.fixture(scope="module")
def tables(tmp_path_factory, postgres) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("databases")
    _to_duckdb(folder / "rows.duckdb")
    _to_sqlite(folder / "rows.sqlite")
    _to_postgres(postgres)
    return SimpleNamespace(
        duckdb=dp.sql(folder / "rows.duckdb", table="rows"),
        sqlite=dp.sql(folder / "rows.sqlite", table="rows"),
        postgresql=dp.sql(postgres, table="rows"),
    )


def _create(types: dict[str, str]) -> str:
    text = ", ".join('"' + name.replace('"', '""') + f'" {kind}' for name, kind in types.items())
    return f"CREATE TABLE rows ({text})"


def _to_duckdb(path) -> None:
    marks = f"({', '.join('?' * len(ROWS))})"
    with duckdb.connect(str(path)) as connection:
        connection.execute(_create(collated("VARCHAR", "COLLATE NOCASE.NOACCENT")))
        # One statement of all rows: duckdb takes milliseconds for each statement.
        cells = [cell for row in zip(*ROWS.values(), strict=True) for cell in row]
        connection.execute(f"INSERT INTO rows VALUES {', '.join([marks] * N_ROWS)}", cells)


def _to_sqlite(path) -> None:
    """Without types, except for a collation: 1 and 1.0 stand in one column."""
    types = {name: "COLLATE NOCASE" if kind == "VARCHAR" else "" for name, kind in TYPES.items()}
    cells = dict(ROWS)
    cells["day"] = [None if day is None else day.isoformat() for day in ROWS["day"]]
    cells["few"] = [float(x) if x == 1 and at % 2 else x for at, x in enumerate(ROWS["few"])]
    connection = sqlite3.connect(path)
    connection.execute(_create(types))
    marks = ", ".join("?" * len(ROWS))
    connection.executemany(
        f"INSERT INTO rows VALUES ({marks})", list(zip(*cells.values(), strict=True))
    )
    connection.commit()
    connection.close()


def _to_postgres(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und-u-ks-level1', "
            "deterministic = false)"
        )
    to_postgres(url, "rows", ROWS, collated("VARCHAR", "COLLATE blind"))


def same(measure, unbound, table, *options) -> None:
    """Compare the integers of a table with those of the frame."""
    expected, answer = (measure(unbound.bind(rows), *options) for rows in (FRAME, table))
    assert answer.cross()[0].tolist() == expected.cross()[0].tolist()
    assert answer.cross()[1] == expected.cross()[1] == N_ROWS
    assert answer.fingerprint == expected.fingerprint


def cells_of(formula: str, degree: int = 0):
    codes = formula.removeprefix("~ ").split(" + ")
    values = [compile_factor(code, BOOK) for code in codes]
    names = [name for name in BOOK if any(name in code for code in codes)]
    if degree:
        tally = Tally((as_category(values[1], codes[1]),), values[0], degree)
    else:
        tally = Tally(
            tuple(as_category(value, code) for value, code in zip(values, codes, strict=True))
        )
    return unbound_cells(formula, BOOK.select(names), (tally,))


DATABASES = ("duckdb", "sqlite", "postgresql")


@pytest.mark.product
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize(
    ("formula", "degree"),
    [
        ("~ text + few", 0),
        ("~ whole + flag + cut(other, [-5, 0, 5])", 0),
        ("~ whole + text", 2),
        ("~ other + few", 2),
        ("~ month(day)", 0),
        ("~ is_missing(text) + is_missing(whole)", 0),
    ],
)
def test_counts_of_groups_are_those_of_rows(database, formula, degree, tables):
    unbound, table = cells_of(formula, degree), getattr(tables, database)
    assert unbound.bind(table).rows.grouped is not None
    same(counts, unbound, table, 2**20)


@pytest.mark.expensive
@pytest.mark.parametrize("database", DATABASES)
def test_margins_and_levels_of_groups_are_those_of_rows(database, tables):
    table = getattr(tables, database)
    name = f"Q({LONG!r})"
    spec = margins(f"~ text*few + flag:{name}", BOOK)
    same(margin_counts, unbound_margins(spec), table)
    same(counted_levels, unbound_levels("~ text", ("text", LONG)), table)


@pytest.mark.expensive
@pytest.mark.parametrize("database", DATABASES)
def test_numbers_without_steps_are_read_row_by_row(database, tables):
    bound = unbound_design(design("~ real + few", BOOK)).bind(getattr(tables, database))
    assert bound.rows.grouped is None


# Sums and counts of numbers, by PostgreSQL.

LATTICES = (20, 9)
SUMMED = {
    "numbers": "~ real + other + whole",
    "levels": "~ text + few + flag + day",
    "products": "~ real:other:whole + text:real",
    "contrasts": "~ C(text, Sum) + C(few, Helmert):real",
    "days": f"~ day*real + Q({LONG!r})",
}


@pytest.mark.expensive
@pytest.mark.parametrize("formula", SUMMED.values(), ids=list(SUMMED))
@pytest.mark.parametrize("bits", LATTICES)
def test_sums_are_those_of_rows(formula, bits, tables):
    book = BOOK | {"text": dp.Categorical(["F", "M"], missing=["f"])}
    for words in ({}, {"row_norm": 0.2}, {"scale": None}, {"center": False}):
        unbound = unbound_design(design(formula, book), **words)
        lattice = Lattice(bits, len(unbound.public.names))
        private = unbound.bind(tables.postgresql)
        summed = private.summed(lattice)
        assert summed is not None
        if "row_norm" in words:
            assert summed[1] < N_ROWS
        same(moments, unbound, tables.postgresql, lattice)


@pytest.mark.expensive
def test_what_postgresql_may_compute_otherwise_is_read(tables):
    columns = {"text": ["F", "1"]}
    cases = [
        ("~ real + log1p(whole)", BOOK, {}),
        ("~ real + poly(other, 2)", BOOK, {}),
        ("~ real + text", BOOK | columns, {}),  # Text that spells a number is one
        ("~ real", BOOK | {"real": (-1e-70, 1e-70)}, {}),
        ("~ real + other", BOOK, {"row_norm": "unit"}),
    ]
    for formula, book, words in cases:
        unbound = unbound_design(design(formula, book), **words)
        lattice = Lattice(20, len(unbound.public.names))
        assert unbound.bind(tables.postgresql).summed(lattice) is None
        same(moments, unbound, tables.postgresql, lattice)
    unbound = unbound_design(design("~ real", BOOK))
    for table in (tables.duckdb, tables.sqlite):
        assert unbound.bind(table).summed(Lattice(20, 1)) is None


@pytest.mark.expensive
def test_bins_and_sides_of_bounds_are_those_of_rows(tables):
    numbers = BOOK.select([name for name in BOOK if isinstance(BOOK[name], dp.Numeric)])
    sides = tuple(_tally(name, entry) for name, entry in numbers.items())
    bins = binned(compile_factor("real", BOOK), [-3.0, 0.0, 0.5, 2.5, 4.1])[0]
    cuts = compile_factor("cut(other, [-4, 0, 0.5, 4])", BOOK)
    few = compile_factor("few", BOOK)
    unbound = unbound_cells("~ cells", numbers, sides)
    bounds = [tally.factors[0].evaluate for tally in sides]
    in_database = unbound.bind(tables.postgresql).by_bounds(bounds)
    assert in_database.sum(axis=1).tolist() == [N_ROWS] * len(bounds)
    assert (in_database.sum(axis=0) > 0).all()
    same(counts, unbound, tables.postgresql, 2**20)
    for names, tallies in (
        (("real", "few"), (Tally((bins, few)),)),
        (("real", "other"), (Tally((cuts,)), Tally((bins,)))),
    ):
        unbound = unbound_cells("~ cells", BOOK.select(names), tallies)
        private = unbound.bind(tables.postgresql)
        assert private.coded() is not private
        same(counts, unbound, tables.postgresql, 2**20)


@pytest.mark.expensive
def test_postgresql_rounds_adds_and_orders_as_the_proof_says(postgres):
    import psycopg

    halves = ["-2.5", "-1.5", "-0.5", "0.5", "1.5", "2.5", "4503599627370495.5"]
    small = ["5e-324", "-1e-80", "-1.0000000000000002e-80", "1e-62", "-2.0000000000000004e-62"]
    with psycopg.connect(postgres) as connection:

        def answers(texts, expression):
            cells = ", ".join(expression.format(f"'{text}'::float8") for text in texts)
            return list(connection.execute(f"SELECT {cells}").fetchone())

        assert answers(halves, "{}::bigint") == [round(float(text)) for text in halves]
        moved = answers(small, "{} + '1e-80'::float8")
        assert moved == [float(text) + 1e-80 for text in small]
        assert moved[3:] == [1e-62, -2.0000000000000004e-62]
        assert min(abs(x) for x in moved if x) > 9e-97
        ends = ["NaN", "Infinity", "-Infinity", "1e300"]
        assert answers(ends, "{} < 'NaN'::float8") == [False, True, True, True]


@pytest.mark.expensive
def test_rows_are_compared_with_the_ball_unless_all_bounds_are_inside(tables):
    for words, within in (({}, True), ({"row_norm": 0.2}, False), ({"scale": None}, True)):
        private = unbound_design(design("~ real + whole", BOOK), **words).bind(tables.postgresql)
        sums = private._queries(Lattice(20, 2)).sums
        assert sums.startswith("SELECT 0, ") is within
        assert ("z0 * z0 + z1 * z1 >" in sums) is not within


def test_no_function_of_a_formula_tells_zeros_apart():
    """Databases group -0.0 and 0.0, and may take numbers near 0 for it."""
    wide = dp.codebook(x=(-1, 1), y=(0, 1), z=(2, 3))
    codes = [f"{name}(y)" for name in ("I", "abs", "cos", "exp", "log1p", "sin", "sqrt")]
    codes += ["x * z", "x / z", "x ** 3", "poly(x, 3)", "bs(y, [0.5])", "cut(x, [-1, 0, 1])"]
    codes += ["pmin(x, y)", "pmax(x, y)", "clip(x, 0, 1)", "ifelse(x > 0, 1, 2)", "x in [0, 1]"]
    codes += ["x == 0", "x >= 0", "-x", "is_missing(x)", "pow(y, 0.5)"]
    for code in codes:
        value = compile_factor(code, wide)
        zeros, minus = (
            value.evaluate({"x": np.array([zero]), "y": np.array([zero]), "z": np.array([2.0])})
            for zero in (0.0, -0.0)
        )
        assert np.array_equal(zeros, minus), code


# Neighbours, passes and plans.


@pytest.mark.expensive
def test_one_record_moves_one_count_by_one(tables, tmp_path):
    """Brute force over cells that a collation or a type could take for one."""
    book = BOOK.select(["text"])
    design = unbound_cells("~ text", book, (Tally((compile_factor("text", book),)),))

    def counted(cell):
        path = tmp_path / "pair.sqlite"
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE rows (text COLLATE NOCASE)")
        connection.executemany("INSERT INTO rows VALUES (?)", [(x,) for x in [*TEXTS, cell]])
        connection.commit()
        connection.close()
        private = design.bind(dp.sql(path, table="rows"))
        assert private.rows.grouped is not None
        return counts(private, 1).cross()[0]

    answers = [counted(cell) for cell in [*TEXTS, 1, 1.0, 2**53 + 1, -0.0]]
    for first, two in pairwise(answers):
        assert np.abs(first - two).sum() in (0, 2)


def test_passes_over_a_query_are_compared_whether_grouped_or_read(tmp_path):
    """Zeros of both signs and NaN do not change the rows; other rows are."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (x DOUBLE, k INTEGER)")
    connection.execute("INSERT INTO rows VALUES (-0.0, 1), (0.0, 1), ('nan', 2), (NULL, 2)")
    source = open_rows(connection.table("rows"))
    names = ("x", "k")
    for _ in range(2):
        assert sum(int(counts.sum()) for _, counts in source.groups(names, 99)) == 4
        assert sum(len(chunk["k"]) for chunk in source.chunks(names, 2)) == 4
    connection.execute("UPDATE rows SET k = 3 WHERE k = 1")
    with pytest.raises(FrameError, match="changed between two readings"):
        list(source.groups(names, 99))


@pytest.mark.expensive
def test_plans_say_where_sums_are_computed(tables):
    book = BOOK.select(["real", "other", "few", "whole"])
    session = dp.session(tables.postgresql, codebook=book, eps=9.0, delta=1e-5)
    share = {"eps": 0.5, "delta": 1e-7}
    plan = session.plan(
        [
            session.call.table("~ few", eps=0.5),
            session.call.cov("~ real + few", mechanism="gauss", **share),
            session.call.cov("~ real + other", mechanism="shells", **share),
            session.call.cov("~ real + log1p(whole)", mechanism="gauss", **share),
        ]
    )
    assert [call.reading for call in plan.calls] == [
        "sums computed in the database",
        "sums computed in the database",
        "rows streamed",
        "rows streamed",
    ]
    assert "Calls 1, 2: sums computed in the database." in plan.summary().as_text()
    frame = dp.session(FRAME, codebook=book, eps=9.0)
    assert frame.plan([frame.call.table("~ few", eps=0.5)]).calls[0].reading == ""
