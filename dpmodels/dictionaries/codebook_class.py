"""``dp.codebook``: declare variables, or draft their declarations from public sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Final

from dpmodels.codebook import Codebook, read_json
from dpmodels.dates import Date
from dpmodels.dictionaries.draft import Draft, of_declared, with_identifiers
from dpmodels.dictionaries.entry import Entry
from dpmodels.dictionaries.schema import (
    entries_of_columns,
    entries_of_dtypes,
    entries_of_fields,
    entries_of_package,
    entries_of_schema,
    entries_of_table,
    entries_of_types,
    types_of,
    types_of_parquet,
)
from dpmodels.dictionaries.table import READERS as LABELLED
from dpmodels.dictionaries.table import read_ddi, read_delimited, read_excel, read_labelled
from dpmodels.errors import CodebookError, FrameError, did_you_mean
from dpmodels.variables import Categorical, Numeric


class codebook(Codebook):  # noqa: N801
    """Declare public bounds and levels of variables, by name.

    Parameters
    ----------
    variables : mapping, optional
        Declarations by name, for names that are not Python identifiers.
    person : str, optional
        The column that says whose a row is, as for :class:`Codebook`.
    design : SurveyDesign, optional
        How the rows were sampled, as for :class:`Codebook`.
    **declarations
        Declarations by name, as for :class:`Codebook`.

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
        """Draft a codebook from public documents, never from rows.

        Parameters
        ----------
        source : path, table, schema or model
            A data dictionary as CSV or Excel, one variable a line, with columns name and type, min,
            max, levels (``1=low; 2=high``), label, unit, missing, or their usual synonyms;
            DDI-Codebook as XML; a file of SPSS, Stata or SAS, of which the labels are read; a table
            schema or data package of Frictionless or a JSON Schema, as JSON or dict; a pandera
            schema or a pydantic model; a DataFrame (pandas, polars, pyarrow, Dask), an Arrow or
            polars schema, a dict of types or a Parquet file, of which names and types are read; a
            table of a database by :func:`sql`, of which types, comments, CHECK
            constraints and ENUM types are read; or a draft or codebook that was saved.

        Returns
        -------
        Draft
            The declarations of the source, with ``?`` for unknown bounds and levels. Two drafts
            combine: ``draft(a) | draft(b)``.

        Raises
        ------
        CodebookError
            If the source declares no variables, contradicts itself or is damaged.

        Notes
        -----
        No cell of a row is read. The categories of pandas and Arrow types are ignored, since they
        are commonly inferred from the rows; where they were declared, pass them:
        ``.complete(sex=table.sex.dtype)``. Documents are trusted: the caller must know that they
        were not made from the rows. Types of a table in memory may be inferred from the rows too:
        its draft is for its curator, who checks them before anybody else sees it.

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
        """Read bounds and levels from public rows, never from protected ones.

        Parameters
        ----------
        data : DataFrame
            Public rows, such as a published survey of the same variables.
        widen : float, default 0.1
            Share of its length by which a range is widened at both ends, rounded outwards for whole
            numbers and days. A non-negative range stays non-negative; the integers 0 and 1 stay as
            they are.

        Returns
        -------
        Draft
            The label of each variable, and so every printout, names the source.

        Raises
        ------
        FrameError, CodebookError, ArgumentError
            If `data` is not a table in memory, column names are not unique texts, or `widen` is not
            a number from 0 to 100.

        Notes
        -----
        Where a dictionary has some of the bounds, public rows may give the others:
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


# Entry point for dictionaries: every supported source becomes a draft.

Entries = dict[str, Entry]

_ACCEPTED: Final = (
    "a data dictionary (.csv, .xlsx), DDI-Codebook (.xml), the labels of SPSS, Stata or SAS (.sav, "
    ".dta, .sas7bdat), JSON of Frictionless or JSON Schema, the schema of a frame or a .parquet "
    "file, a pandera schema or a pydantic model, or a table of a database by dp.sql(...)"
)


def read(source: object) -> Draft:
    """Return the draft of a source; CodebookError if it declares no variables."""
    if isinstance(source, Draft):
        return source
    if isinstance(source, Codebook):
        return Draft(of_declared(source), person=source.person, design=source.design)
    if isinstance(source, str | PathLike):
        path = Path(source)
        if not path.is_file():
            raise CodebookError(
                f"there is no file {str(path)!r} to read a codebook from"
                f"{did_you_mean(str(path), ['private'])}: check the path and the working folder"
            )
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            raise CodebookError(f"a draft of {str(path)!r} cannot be made: expected {_ACCEPTED}")
        try:
            content = reader(path)
            return content if isinstance(content, Draft) else with_identifiers(content, path.name)
        except FrameError as error:
            raise CodebookError(f"{str(path)!r}: {error}") from None
    entries, where = _entries(source)
    if entries is None:
        raise CodebookError(
            f"a draft of {type(source).__name__} cannot be made: expected {_ACCEPTED}"
        )
    return with_identifiers(entries, where)


def _entries(source: object) -> tuple[Entries | None, str]:
    """Return the entries of an object in memory and its description; None for other objects."""
    types = types_of(source)
    if types is not None:
        return entries_of_types(types), "names and types of a table"
    if isinstance(source, Mapping):
        return _of_mapping(source), ""
    if hasattr(source, "declarations"):
        return entries_of_table(source.declarations()), str(source)
    for word, what in (("to_schema", "a pandera model"), ("model_json_schema", "a pydantic model")):
        if isinstance(source, type) and callable(getattr(source, word, None)):
            schema = getattr(source, word)()
            return _entries(schema)[0], f"{what}, {source.__name__}"
    columns = getattr(source, "columns", None)
    if hasattr(source, "checks") and isinstance(columns, Mapping):
        return entries_of_columns(columns), "a pandera schema"
    return None, ""


def _of_mapping(source: Mapping[str, object]) -> Entries | None:
    types = entries_of_dtypes(source)
    if types is not None:
        return types
    if source and all(
        isinstance(variable, Numeric | Date | Categorical) for variable in source.values()
    ):
        return of_declared(source)
    return _of_json(source, "the schema")


def _of_json(plain: Mapping[str, object], where: str) -> Entries | None:
    """Return the entries of JSON values by their schema; None for a codebook or other values."""
    if all(isinstance(value, Mapping) and _DECLARED & set(value) for value in plain.values()):
        return None
    word = next((word for word in _JSON if word in plain), None)
    return None if word is None else _JSON[word](plain, where)


def _read_json(path: Path) -> Entries | Draft:
    plain = read_json(path)
    entries = _of_json(plain, repr(str(path)))
    return Draft.from_dict(plain, path.name) if entries is None else entries


_DECLARED: Final = {"range", "levels", "type", "person", "design"}
# Readers by a key of the object; without any of these keys it holds declarations by name.
_JSON: Final[dict[str, Callable[[Mapping[str, object], str], Entries]]] = {
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
    ".parquet": lambda path: entries_of_types(types_of_parquet(path)),
    **dict.fromkeys(LABELLED, read_labelled),
}
