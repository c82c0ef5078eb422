"""The columns a model wants, held against the columns a table has."""

from collections import Counter
from difflib import get_close_matches

from dpmodels.errors import FrameError
from dpmodels.frames.protocol import RowSource


def require(source: RowSource, wanted: tuple[str, ...]) -> None:
    """Refuse a table that lacks a wanted column or holds it twice.

    Only names are compared: no row is read. The message repeats the wanted names
    and those names of the table that resemble them; it never lists the other
    names, since the first line of a CSV file without a header is a row.

    Parameters
    ----------
    source : RowSource
        The table.
    wanted : tuple of str
        The columns that will be asked of it.

    Raises
    ------
    FrameError
        A wanted column is missing, or the table has two columns of that name.

    Examples
    --------
    >>> from dpmodels.frames import open_rows, require
    >>> require(open_rows({"wage": [9.5, 12.0], "educ": [12, 16]}), ("wage",))
    >>> require(open_rows({"wage": [9.5, 12.0]}), ("wages", "educ"))
    Traceback (most recent call last):
        ...
    dpmodels.errors.FrameError: the data have no column 'wages' (did you mean 'wage'?), 'educ':
    rename the columns of the data, or the variables of the formula and the codebook
    """
    counts = Counter(source.names)
    missing = [_described(name, source.names) for name in wanted if name not in counts]
    if missing:
        raise FrameError(
            f"the data have no column {', '.join(missing)}: rename the columns of the data, "
            "or the variables of the formula and the codebook"
        )
    twice = [repr(name) for name in wanted if counts[name] > 1]
    if twice:
        raise FrameError(
            f"the data have more than one column called {', '.join(twice)}: "
            "rename or drop all but one"
        )


def _described(name: str, names: tuple[str, ...]) -> str:
    """Quote a missing name, with the names that it may have been meant for."""
    folded = {known.strip().casefold(): known for known in names}
    near = get_close_matches(name.strip().casefold(), folded, n=3)
    hint = " or ".join(repr(folded[known]) for known in near)
    return f"{name!r} (did you mean {hint}?)" if near else repr(name)
