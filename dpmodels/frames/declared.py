"""What the codebook declares, held against the columns of a table and their types."""

from collections.abc import Mapping
from typing import Final

from dpmodels.codebook import Categorical, Variable
from dpmodels.errors import FrameError, shorten
from dpmodels.frames.kind import Holds
from dpmodels.frames.levels import LevelCodes
from dpmodels.frames.protocol import RowSource
from dpmodels.frames.require import require


def require_declared(source: RowSource, declared: Mapping[str, Variable]) -> None:
    """Refuse a table that lacks a declared column, or can hold no declared value in it.

    Names and types are compared, and no cell is read. A column is refused for its type
    only where no cell of that type is what was declared: a column of dates, of
    durations, of lists or structures, and for levels that are not numbers one of whole
    numbers. Software that types a column by its cells (pandas, or what wrote a file)
    gives it such a type only if all its cells are so; a table with another row that
    holds a declared value is therefore never refused, whatever one row holds.

    Parameters
    ----------
    source : RowSource
        The table.
    declared : mapping of str to Numeric or Categorical
        The variables that will be read.

    Raises
    ------
    FrameError
        As from `require`; or a column can hold no declared value.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmodels.codebook import Codebook
    >>> from dpmodels.frames import open_rows, require_declared
    >>> rows = open_rows({"born": np.array(["1990-05-01"], "M8[D]")})
    >>> require_declared(rows, Codebook(born=(1900, 2030)))
    Traceback (most recent call last):
        ...
    dpmodels.errors.FrameError: column 'born' is of type datetime64[D], which holds neither numbers
    nor text, and 'born' is declared as a number, 1,900 to 2,030: make numbers of it, such as
    days or years since a date
    """
    require(source, tuple(declared))
    for name, variable in declared.items():
        kind = source.kind(name)
        numbers = not isinstance(variable, Categorical) or LevelCodes(variable.levels).any_number
        if kind.holds is Holds.NOTHING or (kind.holds is Holds.WHOLE and not numbers):
            raise FrameError(
                f"column {name!r} is of type {kind.name}, which holds {_HELD[kind.holds]}, and "
                f"{name!r} is declared as {_instead(variable, kind.holds)}"
            )


_HELD: Final = {Holds.NOTHING: "neither numbers nor text", Holds.WHOLE: "whole numbers alone"}


def _instead(variable: Variable, holds: Holds) -> str:
    """Say what was declared and what to write."""
    public = shorten(variable.describe(), 200)
    if not isinstance(variable, Categorical):
        return f"a number, {public}: make numbers of it, such as days or years since a date"
    or_declare = ", or declare levels that are numbers" if holds is Holds.WHOLE else ""
    return f"levels, {public}: make a column of text of it that holds them{or_declare}"
