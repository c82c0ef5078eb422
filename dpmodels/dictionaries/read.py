"""The one door for dictionaries: whatever says what variables are becomes a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from dpmodels.codebook import Codebook, read_json
from dpmodels.dates import Date
from dpmodels.dictionaries.ddi import read_ddi
from dpmodels.dictionaries.delimited import read_delimited
from dpmodels.dictionaries.draft import Draft, of_declared
from dpmodels.dictionaries.entry import Entry
from dpmodels.dictionaries.excel import read_excel
from dpmodels.dictionaries.frictionless import entries_of_fields, entries_of_package
from dpmodels.dictionaries.json_schema import entries_of_schema
from dpmodels.dictionaries.labelled import READERS as LABELLED
from dpmodels.dictionaries.labelled import read_labelled
from dpmodels.dictionaries.pandera import entries_of_columns
from dpmodels.dictionaries.schema import (
    entries_of_dtypes,
    entries_of_types,
    types_of,
    types_of_parquet,
)
from dpmodels.errors import CodebookError, FrameError
from dpmodels.variables import Categorical, Numeric

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
