"""Rows in databases: sums of products that PostgreSQL computes, and rows that a database groups.

PostgreSQL computes the integers of the lattice by operations that IEEE 754 rounds correctly, and
sums their products exactly (Theorem 68 c). It refuses a product that underflows to 0, so 1e-80 is
added to each number, once it was compared with the codes of missing values; and it takes NaN for
larger than all numbers: what is not less than NaN is missing. A row outside the ball is shrunk by a
root and a quotient: it is read, and coded like others. Where rounded bounds are inside the ball all
rows are, since no operation above is decreasing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.design.columns import readable_labels
from dpmodels.formula import Block, Design
from dpmodels.formula.values import Binned, BoundSide, Category, Clipped, Column, Evaluate, Real
from dpmodels.frames import to_days, to_float
from dpmodels.frames.convert import LevelCodes
from dpmodels.frames.engine import Engine, GroupedSource, double_quoted, kind_of_type
from dpmodels.frames.protocol import Holds, Kind, decoded
from dpmodels.noise.lattice import Lattice
from dpmodels.typing import Floats, Integers
from dpmodels.variables import Categorical, Variable

# Choices: columns whose products are faster summed than read, and levels of a variable.
MOST_COLUMNS: Final = 12
MOST_LEVELS: Final = 100
# The first is added to numbers; the others limit bounds, contrasts, and factors of coordinates.
_TINY: Final = 1e-80
_NAN: Final = "'NaN'::float8"
_BOUNDS: Final = (1e-60, 1e15)
_FACTORS: Final = (1e-20, 1e12)
# The integers of a row, and the sum of their squares, are in 64 bits.
_LONGEST_SQUARE: Final = 2.0**62
_REALS: Final = frozenset({"real", "double precision"})
_TEXTS: Final = frozenset({"text", "character varying", "character", "enum", "citext"})


class RowSums(NamedTuple):
    """Queries for sums of complete rows, and for the rows outside the ball.

    The sums are how many are outside, how many there are, their sum, and their products on and
    above the diagonal.
    """

    sums: str  # Of all complete rows
    inside: str  # Of those in the ball
    outside: str  # The cells of those outside it, in the order of the design's variables


def summed(
    engine: Engine, queries: RowSums, lattice: Lattice
) -> tuple[NDArray[np.object_], int, int]:
    """Let the database add up the rows on the lattice, in one snapshot.

    Returns integers, shape (columns + 1, columns + 1), the number of rows that they are of,
    incomplete ones too, and how many are outside the ball.
    """
    columns, radius = lattice.columns, int(lattice.radius)
    number = 2 + columns + columns * (columns + 1) // 2
    n_outside, n_inside, *sums = _integers(engine, queries.sums, number)
    if n_outside:
        _, n_inside, *sums = _integers(engine, queries.inside, number)
    exact: NDArray[np.object_] = np.zeros((columns + 1, columns + 1), dtype=object)
    exact[0, 0] = n_inside * radius**2
    exact[0, 1:] = [total * radius for total in sums[:columns]]
    above = np.triu_indices(columns)
    exact[1:, 1:][above] = sums[columns:]
    return exact + np.triu(exact, 1).T, engine.count() - n_outside, n_outside


def _integers(engine: Engine, query: str, number: int) -> list[int]:
    """Run a query for one row of so many integers; sums of no row are 0."""
    (chunk,) = engine.chunks(query, tuple(map(str, range(number))), 1)
    return [int(decoded(cells)[0] or 0) for cells in chunk.values()]


def sums_of_rows(
    engine: Engine, design: Design, factor: Floats, shift: Floats, lattice: Lattice
) -> RowSums | None:
    """Write the queries for rows ``factor * x - shift`` on the lattice; None to read the rows.

    They follow from the design and the declared types of the columns. `factor` and `shift` are
    those of :func:`dpmodels.noise.lattice.to_lattice`.
    """
    factor, shift = factor * lattice.steps, shift * lattice.steps
    ends = np.abs(np.rint(np.stack([design.lower, design.upper]) * factor - shift)).max(axis=0)
    if len(design.names) > MOST_COLUMNS or not _within(factor, _FACTORS):
        return None
    longest = float((ends * ends).sum())
    if not longest < _LONGEST_SQUARE:
        return None
    names = design.variables
    converted = [_converted(engine, name, design.codebook[name]) for name in names]
    coded = [text for block in design.blocks for text in _coded(block, names)]
    factors = (factor for block in design.blocks for factor in block.factors)
    read = {getattr(factor.evaluate, "name", None) for factor in factors}
    if None in converted or None in coded or read != set(names):
        return None
    return _queries(
        engine,
        names,
        list(map(str, converted)),
        [
            f"({text} * {_number(by)} - {_number(less)})::bigint"
            for text, by, less in zip(coded, factor.tolist(), shift.tolist(), strict=True)
        ],
        int(lattice.radius) if longest > lattice.radius**2 else 0,
    )


def _queries(
    engine: Engine, names: tuple[str, ...], converted: list[str], coded: list[str], radius: int
) -> RowSums:
    """Nest queries: cells and converted columns, then complete rows; radius 0 means no limit."""
    cells = [f"{engine.cell(name)} AS c{at}" for at, name in enumerate(names)]
    columns = [f"{text} AS x{at}" for at, text in enumerate(converted)]
    complete = " AND ".join(f"x{at} < {_NAN}" for at in range(len(names)))
    z = [f"z{at}" for at in range(len(coded))]
    squares = " + ".join(f"{name} * {name}" for name in z)
    lattice = ", ".join(f"{text} AS {name}" for text, name in zip(coded, z, strict=True))
    products = [f"sum({a} * {b})" for at, a in enumerate(z) for b in z[at:]]
    outside = f"{squares} > {radius**2}" if radius else "false"
    n_outside = f"count(*) FILTER (WHERE {outside})" if radius else "0"
    sums = ", ".join([n_outside, "count(*)", *(f"sum({x})" for x in z), *products])

    # OFFSET 0 keeps PostgreSQL from repeating the inner expressions in every product.
    def rows(selected: Iterable[str], passed: str = "") -> str:
        inner = f"SELECT {', '.join(selected)} FROM {engine.table}{_fence(converted)}"
        return f"(SELECT {passed}{lattice} FROM ({inner}) a WHERE {complete} OFFSET 0) b"

    passed = ", ".join(f"c{at}" for at in range(len(names)))
    return RowSums(
        f"SELECT {sums} FROM {rows(columns)}",
        f"SELECT {sums} FROM {rows(columns)} WHERE NOT {outside}",
        f"SELECT {passed} FROM {rows([*cells, *columns], passed + ', ')} WHERE {outside}",
    )


# Counts of rows by cells of numbers that are compared, not computed.


def counts_by_cell(engine: Engine, codebook: Codebook, factors: tuple[Category, ...]) -> str | None:
    """Write the query for the number of rows by the levels of factors; None to read the rows.

    Levels are numbered from 0, and NULL where missing. It follows from the factors and the declared
    types of the columns.
    """
    pairs = [_cell(f"x{at}", factor.evaluate) for at, factor in enumerate(factors)]
    written = [pair for pair in pairs if pair is not None]
    inner = _numbers(engine, codebook, [name for name, _ in written])
    if len(written) < len(factors) or inner is None:
        return None
    cells = ", ".join(cell for _, cell in written)
    order = ", ".join(str(at) for at in range(1, len(written) + 1))
    return f"SELECT {cells}, count(*) FROM {inner} GROUP BY {order} ORDER BY {order}"


def counts_by_bounds(
    engine: Engine, codebook: Codebook, bounds: Sequence[BoundSide]
) -> Integers | None:
    """Let the database count numbers below, between and above bounds, and missing ones.

    Integers of shape (bounds, 4); None, by the declared types of the columns, to read the rows.
    """
    inner = _numbers(engine, codebook, [bound.name for bound in bounds])
    if inner is None:
        return None
    limits = [(_number(bound.lower), _number(bound.upper)) for bound in bounds]
    conditions = [
        f"x{at} {compared}"
        for at, (lower, upper) in enumerate(limits)
        for compared in (f"< {lower}", f"<= {upper}", f"< {_NAN}")
    ]
    counted = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
    # Most rows are within all bounds, and need no more than to be compared with them.
    within = " AND ".join(f"x{at} BETWEEN {low} AND {up}" for at, (low, up) in enumerate(limits))
    query = f"SELECT count(*), {counted} FROM {inner} WHERE ({within}) IS NOT TRUE"
    n_rows, *up_to = _integers(engine, query, 1 + len(conditions))
    counts = np.diff(np.reshape(up_to, (len(bounds), 3)), prepend=0, append=n_rows)
    counts[:, 1] += engine.count() - n_rows
    return counts.astype(np.int64)


def _numbers(engine: Engine, codebook: Codebook, names: Sequence[str]) -> str | None:
    """Write the query for converted columns, x0 and so on; None if one of them is not converted."""
    converted = [_converted(engine, name, codebook[name]) for name in names]
    if None in converted:
        return None
    columns = ", ".join(f"{text} AS x{at}" for at, text in enumerate(converted))
    return f"(SELECT {columns} FROM {engine.table}{_fence(converted)}) a"


def _cell(number: str, evaluate: Evaluate) -> tuple[str, str] | None:
    """Return the variable of a factor, and its level by the converted number."""
    match evaluate:
        case Column(name):
            return name, number
        case Binned(Clipped(name, lower, upper), (first, *inner, last)) if len(inner) < MOST_LEVELS:
            clipped = f"CASE WHEN {number} < {_NAN} THEN {_clip(number, lower, upper)} END"
            cases = [f"> {_number(last)} THEN NULL"]
            cases += [f"> {_number(edge)} THEN {at}" for at, edge in enumerate(inner, 1)][::-1]
            cases += [f">= {_number(first)} THEN 0"]
            number = clipped
        case _:
            return None
    return name, f"CASE {' '.join(f'WHEN {number} {case}' for case in cases)} END"


# Columns as the package converts them: NULL or NaN where missing.


def _fence(texts: Iterable[str | None]) -> str:
    """Return what makes PostgreSQL compute expressions once, where they are more than columns."""
    return " OFFSET 0" if any("CASE" in str(text) for text in texts) else ""


def _converted(engine: Engine, name: str, variable: Variable) -> str | None:
    kind = kind_of_type(engine.types[name])
    if isinstance(variable, Categorical):
        return _level_code(name, variable, kind)
    is_days = kind.holds is Holds.DAYS
    if is_days is not isinstance(variable, Date):
        return None
    if isinstance(variable, Date):
        days = f"({engine.cell(name)} - '1970-01-01'::date)::float8"
        return _without(days, to_days(np.array(variable.missing, dtype=object)))
    text = _float(name, kind)
    if text is None or not _within(np.array([variable.lower, variable.upper]), _BOUNDS):
        return None
    text = _without(text, to_float(np.array(variable.missing, dtype=object)))
    step = variable.step
    if not step:
        return text
    if not _within(np.array([step]), _FACTORS):
        return None
    lower, clipped = _number(variable.lower), _clip(_moved(text), variable.lower, variable.upper)
    steps = f"round(({clipped} - {lower}) / {_number(step)})"
    return f"CASE WHEN {text} < {_NAN} THEN {lower} + {_number(step)} * {steps} END"


def _float(name: str, kind: Kind) -> str | None:
    if kind.holds is not Holds.WHOLE and kind.name not in _REALS:
        return None
    return f"{double_quoted(name)}::{'int::' * (kind.name == 'boolean')}float8"


def _without(text: str, missing: Floats) -> str:
    codes = ", ".join(_number(code) for code in missing.tolist() if code == code)
    return f"CASE WHEN {text} NOT IN ({codes}) THEN {text} END" if codes else text


def _moved(text: str) -> str:
    """Add a number to others whose products may underflow."""
    return f"({text} + {_number(_TINY)})"


def _level_code(name: str, variable: Categorical, kind: Kind) -> str | None:
    """Look up the position of a level among those declared.

    Text is compared where no level is or spells a number, numbers where all levels are numbers.
    """
    levels = variable.levels
    if len(levels) > MOST_LEVELS:
        return None
    labels = readable_labels(variable)
    every = LevelCodes((*levels, *variable.missing, *labels))
    if kind.name in _TEXTS:
        texts = dict(zip(levels, range(len(levels)), strict=True)) | dict(labels)
        is_simple = all(isinstance(text, str) and _is_simple(text) for text in texts)
        if every.any_number or every.any_time or not is_simple:
            return None
        subject = f'{double_quoted(name)}::text COLLATE "C"'
        cases = [f"WHEN '{text}' THEN {code}" for text, code in texts.items()]
    else:
        number = _float(name, kind)
        codes = {value: code for value, code in every.numbers.items() if code < len(levels)}
        if number is None or not all(map(np.isfinite, codes)):
            return None
        subject = number
        cases = [f"WHEN {_number(value)} THEN {code}" for value, code in codes.items()]
    return f"CASE {subject} {' '.join(cases)} END"


def _is_simple(text: str) -> bool:
    """Whether a text is the same between quotes under every encoding and setting."""
    return text.isascii() and text.isprintable() and not set(text) & set("'\\")


# Coded columns.


def _coded(block: Block, names: tuple[str, ...]) -> list[str | None]:
    """Return the coded columns of complete rows, clipped; the first factor varies fastest."""
    factors = list(zip(block.factors, block.contrasts, strict=True))
    parts = [_factor(factor, contrast, names) for factor, contrast in factors]
    if len(parts) > 3 or None in parts:
        return [None]
    match block.factors:
        case (Real(variable=str() as name, lower=lower, upper=upper),):
            return [_clip(_moved(f"x{names.index(name)}"), lower, upper)]
    products = parts[0] or []
    for part in parts[1:]:
        products = [f"({left} * {right})" for right in part or [] for left in products]
    ends = zip(products, block.lower.tolist(), block.upper.tolist(), strict=True)
    return [_clip(text, lower, upper) for text, lower, upper in ends]


def _factor(factor: object, contrast: Floats | None, names: tuple[str, ...]) -> list[str] | None:
    match factor:
        case Real(evaluate=Clipped(name, lower, upper)):
            return [_clip(_moved(f"x{names.index(name)}"), lower, upper)]
        case Category(evaluate=Column(name)) if contrast is not None:
            if not _within(contrast, _BOUNDS):
                return None
            return [_cases(f"x{names.index(name)}", column) for column in contrast.T.tolist()]
    return None


def _cases(code: str, values: list[float]) -> str:
    cases = " ".join(f"WHEN {at} THEN {_number(value)}" for at, value in enumerate(values))
    return f"CASE {code} {cases} END"


def _clip(text: str, lower: float, upper: float) -> str:
    """Clip a number that is not NULL, which least and greatest would ignore."""
    return f"least(greatest({text}, {_number(lower)}), {_number(upper)})"


def _number(value: float) -> str:
    """Write a finite number, bit for bit."""
    return f"'{float(value)!r}'::float8"


def _within(values: Floats, limits: tuple[float, float]) -> bool:
    """Whether numbers are zero or of a size between limits."""
    sizes = np.abs(values)
    return bool(np.all((sizes == 0) | ((sizes >= limits[0]) & (sizes <= limits[1]))))


# A choice: more combinations of declared values are read row by row.
MOST_GROUPS: Final = 2**20
# A choice: groups that are read at a time.
MANY_GROUPS: Final = 2**15


def grouping(
    source: GroupedSource, codebook: Codebook, undeclared: tuple[str, ...]
) -> GroupedSource | None:
    """Return the source if it groups rows by these columns, None if they are read one by one.

    That follows from the declared variables and the types of the columns alone: each column has a
    type that the source groups exactly, and the declared values have at most 2**20 combinations.
    Undeclared levels are always grouped.
    """
    if not all(map(source.repeats, (*codebook, *undeclared))):
        return None
    n_values = (
        _number_of_values(entry, source.kind(name).holds is Holds.WHOLE)
        for name, entry in codebook.items()
    )
    return source if math.prod(n_values) <= MOST_GROUPS else None


def _number_of_values(variable: Variable, whole: bool) -> float:
    """Return how many values a column of declared cells has, missing ones as one more."""
    match variable:
        case Categorical(levels=levels):
            size = float(len(levels))
        case Date(days=(first, last)):
            size = last - first + 1
        case _:
            step = variable.step or (1.0 if whole else 0.0)
            size = (variable.upper - variable.lower) / step + 1 if step else math.inf
    return size + len(variable.missing) + 1
