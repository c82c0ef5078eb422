"""``dp.codebook``: declare variables, or draft their declarations from public sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from dpmodels.codebook import Codebook, read_json
from dpmodels.dates import Date
from dpmodels.dictionaries.ddi import read_ddi
from dpmodels.dictionaries.draft import Draft, of_declared
from dpmodels.dictionaries.entry import Entry
from dpmodels.dictionaries.json_schema import (
    entries_of_fields,
    entries_of_package,
    entries_of_schema,
)
from dpmodels.dictionaries.labelled import READERS as LABELLED
from dpmodels.dictionaries.labelled import read_labelled
from dpmodels.dictionaries.schema import (
    entries_of_columns,
    entries_of_dtypes,
    entries_of_types,
    types_of,
    types_of_parquet,
)
from dpmodels.dictionaries.table import read_delimited, read_excel
from dpmodels.errors import CodebookError, FrameError
from dpmodels.variables import Categorical, Numeric


class codebook(Codebook):  # noqa: N801
    """Declare public bounds and levels of variables, by name.

    Parameters
    ----------
    variables : mapping, optional
        Declarations by name, for names that are not Python identifiers.
    person : str, optional
        The column that says whose a row is, as for :class:`Codebook`.
    **declarations
        Declarations by name, as for :class:`Codebook`, which is what is made of them.

    Raises
    ------
    CodebookError
        If a declaration cannot be used; the message names the variable.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> print(cb)
    variable  type         declared
    age       numeric      0 to 100
    sex       categorical  F | M
    """

    @staticmethod
    def draft(source: object) -> Draft:
        """Draft a codebook from what public documents say, never from rows.

        Parameters
        ----------
        source : path, table, schema or model
            A data dictionary as CSV or Excel, one variable a line, with columns name and type, min,
            max, levels (``1=low; 2=high``), label, unit, missing, or their usual synonyms;
            DDI-Codebook as XML; a file of SPSS, Stata or SAS, of which the labels are read; a table
            schema or data package of Frictionless or a JSON Schema, as JSON or dict; a pandera
            schema or a pydantic model; a DataFrame (pandas, polars, pyarrow, Dask), an Arrow or
            polars schema, a dict of types or a Parquet file, of which names and types are read; or
            a draft or codebook that was saved.

        Returns
        -------
        Draft
            What the source says, with ``?`` for the bounds and levels that it does not. Two say
            more: ``draft(a) | draft(b)``.

        Raises
        ------
        CodebookError
            If the source says nothing of variables, contradicts itself or is damaged.

        Notes
        -----
        No cell of a row is read. The categories of pandas and Arrow types are passed over, since
        they are commonly made of the rows; where they were declared, give them:
        ``.complete(sex=table.sex.dtype)``. A document is taken at its word: that it was not itself
        made of the rows is for whoever gives it to know.

        Examples
        --------
        >>> import dpmodels as dp
        >>> fields = [{"name": "age", "type": "integer", "constraints": {"minimum": 0}}]
        >>> print(dp.codebook.draft({"fields": fields}))
        variable  type     declared
        age       integer  0 to ?
        Not known (?): 'age'; draft.complete(age=(lower, upper))
        """
        return read(source)

    @staticmethod
    def from_public(data: object, widen: float = 0.1) -> Draft:
        """Read bounds and levels off rows that are public: never off those to be protected.

        Parameters
        ----------
        data : DataFrame
            Public rows, such as a published survey of the same variables.
        widen : float, default 0.1
            What ranges are widened by at both ends, as a share of their length; those of whole
            numbers and of days to the next. None is widened from above zero to below it, nor one of
            0 and 1 alone.

        Returns
        -------
        Draft
            The label of each variable says where it comes from, and so does whatever prints it.

        Raises
        ------
        FrameError, CodebookError, ArgumentError
            If it is no table in memory, names of columns are not text of their own, or `widen` is
            no number from 0 to 100.

        Notes
        -----
        Where a dictionary knows some of the bounds, public rows may give the others:
        ``draft | dp.codebook.from_public(table[list(draft.unknown)])``.

        Examples
        --------
        >>> import dpmodels as dp
        >>> import pandas as pd
        >>> print(dp.codebook.from_public(pd.DataFrame({"visits": [0, 4, 20]})))
        variable  type     declared  label
        visits    integer  0 to 22   from a public sample
        From a public sample of 3 rows, ranges widened by 10%
        """
        from dpmodels.dictionaries.public_sample import from_public

        return from_public(data, widen)


# The one door for dictionaries: whatever says what variables are becomes a draft.

Entries = dict[str, Entry]

_ACCEPTED: Final = (
    "a data dictionary (.csv, .xlsx), DDI-Codebook (.xml), the labels of SPSS, Stata or SAS (.sav, "
    ".dta, .sas7bdat), JSON of Frictionless or JSON Schema, the schema of a frame or a .parquet "
    "file, a pandera schema or a pydantic model"
)


def read(source: object) -> Draft:
    """Return the draft of a source; CodebookError if it says nothing of variables."""
    if isinstance(source, Draft):
        return source
    if isinstance(source, Codebook):
        return Draft(of_declared(source), person=source.person)
    if isinstance(source, str | PathLike):
        return _read_path(Path(source))
    made, where = _entries(source)
    if made is None:
        raise CodebookError(
            f"a draft of {type(source).__name__} cannot be made: expected {_ACCEPTED}"
        )
    return Draft(made, where)


def _read_path(path: Path) -> Draft:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CodebookError(f"a draft of {str(path)!r} cannot be made: expected {_ACCEPTED}")
    try:
        made = reader(path)
        return made if isinstance(made, Draft) else Draft(made, path.name)
    except FrameError as error:
        raise CodebookError(f"{str(path)!r}: {error}") from None


def _entries(source: Any) -> tuple[Entries | None, str]:
    """Return the entries of what stands in memory, and what it is; None of anything else."""
    types = types_of(source)
    if types is not None:
        return entries_of_types(types), "names and types of a table"
    if isinstance(source, Mapping):
        return _of_mapping(source), ""
    for word, what in (("to_schema", "a pandera model"), ("model_json_schema", "a pydantic model")):
        if isinstance(source, type) and callable(getattr(source, word, None)):
            told = getattr(source, word)()
            return _entries(told)[0], f"{what}, {source.__name__}"
    if hasattr(source, "checks") and isinstance(getattr(source, "columns", None), Mapping):
        return entries_of_columns(source.columns), "a pandera schema"
    return None, ""


def _of_mapping(source: Mapping[Any, Any]) -> Entries | None:
    types = entries_of_dtypes(source)
    if types is not None:
        return types
    if source and all(isinstance(own, Numeric | Date | Categorical) for own in source.values()):
        return of_declared(source)
    return _of_json(source, "the schema")


def _of_json(plain: Mapping[str, Any], where: str) -> Entries | None:
    """Return the entries of JSON values by what they are; None of a codebook's or of others."""
    if all(isinstance(own, Mapping) and _DECLARED & set(own) for own in plain.values()):
        return None
    word = next((word for word in _JSON if word in plain), None)
    return None if word is None else _JSON[word](plain, where)


def _read_json(path: Path) -> Entries | Draft:
    plain = read_json(path)
    made = _of_json(plain, repr(str(path)))
    return Draft.from_dict(plain, path.name) if made is None else made


def _read_parquet(path: Path) -> Entries:
    return entries_of_types(types_of_parquet(path))


_DECLARED: Final = {"range", "levels", "type", "person"}
# By a name that stands in the object itself; of what has none of them, declarations by name.
_JSON: Final[dict[str, Callable[[Mapping[str, Any], str], Entries]]] = {
    "resources": entries_of_package,
    "fields": entries_of_fields,
    "properties": entries_of_schema,
    "items": entries_of_schema,
    "$ref": entries_of_schema,
}
_READERS: Final[dict[str, Callable[[Path], Entries | Draft]]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".txt": read_delimited,
    ".xlsx": read_excel,
    ".xlsm": read_excel,
    ".xml": read_ddi,
    ".json": _read_json,
    ".parquet": _read_parquet,
    **dict.fromkeys(LABELLED, read_labelled),
}
