"""The codebook: public facts about variables, the only ones a design may use.

A variable is a number with public bounds or a category with public levels. Nothing is ever learnt
from rows.

Codebooks attached to tables, in the metadata of pandas and Arrow.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from hashlib import sha256
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dpmodels import column_roles
from dpmodels.arguments import checked_methods
from dpmodels.atomic_files import require_target, write_whole
from dpmodels.errors import CodebookError, FrameError, did_you_mean, shorten
from dpmodels.external_files import parse, read_bytes
from dpmodels.labels import plain
from dpmodels.levels import check_writable, said_missing
from dpmodels.typing import AnyPath, Plain
from dpmodels.variables import FORM, Categorical, Variable, as_variable, from_plain, kind, to_plain

if TYPE_CHECKING:
    import pyarrow as pa


# A choice: far beyond any honest codebook's file.
MOST_BYTES = 64 * 2**20
# A choice: most characters of levels in the printed table.
WIDEST = 72
HEAD: Final = ("variable", "type", "declared", "unit", "label")


def _names(names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise CodebookError(f"names {names!r} is one string; give a list of names")
    return tuple(names)


def brief(variable: Variable) -> str:
    """Return the declaration with missing codes; of many levels the first, and their number."""
    text = variable.describe()
    if not isinstance(variable, Categorical) or len(text) <= WIDEST:
        return text
    missing = said_missing(variable.missing)
    return f"{shorten(text.removesuffix(missing), WIDEST)} ({len(variable.levels)} levels){missing}"


@checked_methods
class Codebook(Mapping[str, Variable]):
    """Public bounds and levels of variables, by name.

    Parameters
    ----------
    variables : mapping, optional
        Declarations by name, for names that are not Python identifiers.
    person : str, optional
        The column of person ids: every verb then protects persons, unless the call says
        ``person=False``. It need not be a variable.
    design : SurveyDesign, optional
        How the rows were sampled, see ``dp.design``: estimates are then weighted, unless the call
        says ``design=False``.
    **declarations
        Declarations by name: a tuple ``(lower, upper)`` of numbers or dates, a list of levels, a
        dict of levels with their labels, pandas' ``CategoricalDtype``, or a
        :class:`Numeric`, :class:`Integer`, :class:`Date`, :class:`Categorical` or :class:`Boolean`
        with label, unit and missing codes; an :class:`Identifier` for a column of ids.

    Raises
    ------
    CodebookError
        If a declaration cannot be used; the message names the variable.

    Notes
    -----
    The bounds must come from knowledge, never from the data: a minimum or a maximum read off the
    rows is a leak that no mechanism can mend.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> print(cb)
    variable  type         declared
    age       numeric      0 to 100
    sex       categorical  F | M
    >>> print(dp.codebook(cb, person="id"))
    variable  type         declared
    age       numeric      0 to 100
    sex       categorical  F | M
    id        person       identifies persons
    """

    _attached = False

    def __init__(
        self,
        variables: Mapping[str, object] | None = None,
        /,
        *,
        person: str | None = None,
        design: column_roles.SurveyDesign | Mapping[str, object] | None = None,
        **declarations: object,
    ) -> None:
        if not isinstance(variables, Mapping | None):
            raise CodebookError(
                f"a codebook cannot be made of a {type(variables).__name__}: write the public "
                'bounds or levels of each variable, dp.codebook(age=(0, 100), sex=["F", "M"]) or '
                'dp.codebook({"body mass": (10, 60)}); dp.codebook.draft(table) reads the names'
            )
        declared = {**(variables or {}), **declarations}
        for name in declared:
            check_name(name)
        variable_entries, self._identifiers = column_roles.without_identifiers(declared)
        self._variables = {
            name: as_variable(name, value) for name, value in variable_entries.items()
        }
        base = variables if isinstance(variables, Codebook) else None
        if base is not None:
            base_identifiers = base.identifiers.items()
            self._identifiers = {
                k: v for k, v in base_identifiers if k not in variable_entries
            } | self._identifiers
        self._person = column_roles.checked_person(
            base.person if base is not None and person is None else person
        )
        survey = column_roles.as_design(design)
        self._design = base.design if base is not None and survey is None else survey

    @property
    def person(self) -> str | None:
        """The column of person ids, or None."""
        return self._person

    @property
    def design(self) -> column_roles.SurveyDesign | None:
        """How the rows were sampled, or None."""
        return self._design

    def with_design(self, design: column_roles.SurveyDesign | None) -> Self:
        """Return the same codebook with another design, or without one."""
        changed = copy(self)
        changed._design = design
        return changed

    @property
    def unit(self) -> str | None:
        """The column of what is protected: persons, or the sampling units of a design."""
        units = None if self.design is None else self.design.psu
        return self.person or units

    @property
    def attached(self) -> bool:
        """Whether it was attached to a table, and not given by the caller."""
        return self._attached

    def beside_table(self) -> Self:
        """Return the same codebook, marked as attached to a table."""
        marked = copy(self)
        marked._attached = True
        return marked

    @property
    def identifiers(self) -> Mapping[str, column_roles.Identifier]:
        """The columns of ids, which are not variables, by name."""
        return self._identifiers

    def missing_ids(self, person: str | None) -> tuple[str, ...]:
        """Return the canonical ids that are missing values in a column, sorted."""
        identifier = self.identifiers.get(person or "")
        return () if identifier is None else tuple(sorted(identifier.missing))

    @classmethod
    def uniform(cls, names: Iterable[str], declared: object) -> Codebook:
        """Declare many variables alike.

        Examples
        --------
        >>> import dpmodels as dp
        >>> len(dp.codebook.uniform([f"pixel{i}" for i in range(64)], (0, 255)))
        64
        """
        return cls(dict.fromkeys(_names(names), declared))

    def __getitem__(self, name: str) -> Variable:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Codebook):
            return False
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        variables, identifiers, *rest = self._parts()
        return hash((tuple(variables.items()), tuple(sorted(identifiers)), *rest))

    def _parts(
        self,
    ) -> tuple[
        Mapping[str, Variable],
        Mapping[str, column_roles.Identifier],
        str | None,
        column_roles.SurveyDesign | None,
    ]:
        return self._variables, self._identifiers, self._person, self._design

    def __or__(self, other: Mapping[str, object]) -> Codebook:
        """Return the union; the right-hand side wins, and two columns of persons are refused."""
        roles = column_roles.Roles.of(self).joined(column_roles.Roles.of(other))
        declared = {**self, **other}
        declarations = {**declared, **roles.identifiers, **declared}  # Variables first
        return Codebook(declarations, person=roles.person, design=roles.design)

    def select(self, names: Iterable[str]) -> Codebook:
        """Return the codebook of some of the variables.

        Raises
        ------
        CodebookError
            If a name is not in the codebook.
        """
        selected = _names(names)
        for name in selected:
            if name not in self:
                near = did_you_mean(name, self)
                raise CodebookError(
                    f"variable {name!r} is not in the codebook{near}; declare it first"
                )
        chosen = of_variables({name: self[name] for name in selected})
        chosen._identifiers, chosen._person = self._identifiers, self._person
        chosen._design = self._design
        return chosen

    def to_dict(self) -> dict[str, dict[str, Plain]]:
        """Return plain values, as written to JSON."""
        variables = {name: to_plain(variable) for name, variable in self.items()}
        return column_roles.Roles.of(self).beside(variables)

    @classmethod
    def from_dict(cls, declared: Mapping[str, Mapping[str, Plain]]) -> Codebook:
        """Read what :meth:`to_dict` wrote."""
        if not isinstance(declared, Mapping):
            raise CodebookError(f"a codebook of type {type(declared).__name__}; {FORM}")
        entries, roles = column_roles.without_roles(declared)
        variables = {name: from_plain(name, entry) for name, entry in entries.items()}
        declarations = {**variables, **roles.identifiers}
        return cls(declarations, person=roles.person, design=roles.design)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the codebook as JSON, whole or not at all.

        Raises
        ------
        ArgumentError, FrameError
            If it cannot be written, or the file exists and `overwrite` is False.
        """
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        write_whole(path, text.encode(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Codebook:
        """Read a codebook from JSON.

        Raises
        ------
        CodebookError
            If the file is missing, is not JSON or declares something unusable.
        """
        return cls.from_dict(read_json(path))

    def attach(self, data: object) -> object:
        """Return a table with the codebook attached, where every verb finds it.

        Parameters
        ----------
        data : pandas.DataFrame, pyarrow.Table or pyarrow.RecordBatch
            It does not change; no row is copied or read. Frames of polars have no metadata: see
            :meth:`write_parquet`.

        Returns
        -------
        The same kind of table
            What pandas derives from it, such as a frame of some of its columns, carries the
            codebook too.

        Raises
        ------
        CodebookError
            If such a table has no metadata.

        Examples
        --------
        >>> import dpmodels as dp
        >>> import pandas as pd
        >>> table = dp.codebook(age=(0, 100)).attach(pd.DataFrame({"age": [41, 35, 62]}))
        >>> list(table[["age"]].attrs)
        ['dpmodels.codebook/1']
        """
        return attached(self.to_dict(), data)

    def write_parquet(self, data: object, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write a table in memory as a Parquet file that carries the codebook in its footer.

        Parameters
        ----------
        data : DataFrame
            Of pandas, polars or pyarrow.
        path : path
            A new file, written whole or not at all.
        overwrite : bool, default False
            Whether an existing file is replaced.

        Raises
        ------
        ArgumentError, FrameError
            If the file cannot be written, or `data` is not such a table.
        """
        write_parquet(self.to_dict(), data, path, overwrite=overwrite)

    def _rows(self) -> list[tuple[str, ...]]:
        units = {name: getattr(variable, "unit", "") for name, variable in self.items()}
        rows = [
            (name, kind(variable), brief(variable), units[name], variable.label)
            for name, variable in self.items()
        ]
        return rows + self.id_lines()

    def id_lines(self) -> list[tuple[str, ...]]:
        """Return the lines of the printed table for ids and persons."""
        return column_roles.Roles.of(self).lines()

    def __repr__(self) -> str:
        return as_text(self._rows())

    def _repr_html_(self) -> str:
        return as_html(self._rows())


def of_variables(variables: Mapping[str, Variable]) -> Codebook:
    """Return variables of other codebooks, checked there, without persons, ids or a design."""
    book = Codebook.__new__(Codebook)
    book._variables, book._identifiers = dict(variables), {}
    book._person = book._design = None
    return book


def fingerprint(codebook: Codebook) -> str:
    """Return the digest of declarations in a ledger: SHA-256 of their JSON."""
    return sha256(json.dumps(codebook.to_dict(), sort_keys=True).encode()).hexdigest()


def check_name(name: object) -> None:
    """Refuse an invalid name of a variable."""
    if not isinstance(name, str) or not name.strip():
        raise CodebookError(f"variable name {name!r} is not a non-empty string")
    check_writable("variable name", name)


def read_json(path: str | PathLike[str]) -> dict[str, Plain]:
    """Read the JSON object of a codebook; CodebookError if the file has none."""
    try:
        declared = parse(read_bytes(path, MOST_BYTES).removeprefix(BOM_UTF8))
    except FrameError as error:
        raise CodebookError(
            f"codebook {str(path)!r} cannot be read as JSON ({error}); {FORM}"
        ) from None
    if not isinstance(declared, dict):
        raise CodebookError(f"codebook {str(path)!r} is not a JSON object; {FORM}")
    return declared


def as_text(rows: list[tuple[str, ...]], head: tuple[str, ...] = HEAD) -> str:
    """Format lines on variables as text, without empty columns after the third."""
    cells = _cells(rows, head)
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def as_html(rows: list[tuple[str, ...]]) -> str:
    """Format the same as a table of HTML."""
    from html import escape

    head, *body = _cells(rows, HEAD)
    cells = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body
    )
    return (
        "<table><thead><tr>"
        + "".join(f"<th>{cell}</th>" for cell in head)
        + f"</tr></thead><tbody>{cells}</tbody></table>"
    )


def _cells(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> list[tuple[str, ...]]:
    used = [j for j in range(len(head)) if j < 3 or any(row[j] for row in rows)]
    return [tuple(plain(row[j]) for j in used) for row in (head, *rows)]


codebook = Codebook


# The key with the version of its format.
KEY: Final = "dpmodels.codebook/1"
_ANY_VERSION: Final = KEY.partition("/")[0] + "/"
# Where pandas writes the attributes of a frame, as JSON.
_OF_PANDAS: Final = b"PANDAS_ATTRS"
MOST_CHARACTERS: Final = 2**24


def attached(declared: Mapping[str, object], data: Any) -> Any:
    """Return the same table with a codebook's plain values attached; no row is copied or read."""
    import narwhals.stable.v2 as nw

    text = json.dumps(declared)
    if nw.dependencies.is_pandas_dataframe(data):
        frame = data.copy(deep=False)
        frame.attrs = {**data.attrs, KEY: text}
        return frame
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return data.replace_schema_metadata({**(data.schema.metadata or {}), KEY: text})
    raise CodebookError(
        f"a codebook cannot be attached to a table of type {type(data).__name__}, which has no "
        "metadata; attach it to a pandas or pyarrow table, write cb.write_parquet(table, "
        '"rows.parquet"), or set it once by dp.options(codebook=cb)'
    )


def write_parquet(
    declared: Mapping[str, object], data: Any, path: AnyPath, *, overwrite: bool = False
) -> None:
    """Write a table in memory as a Parquet file with a codebook's plain values in its footer."""
    import narwhals.stable.v2 as nw

    target = require_target(path, overwrite=overwrite)
    try:
        from pyarrow import parquet
    except ImportError:
        raise FrameError(
            'writing Parquet files needs pyarrow: pip install "dpmodels[arrow]"'
        ) from None
    try:
        table = nw.from_native(data, eager_only=True).to_arrow()
    except TypeError:
        raise FrameError(
            f"rows of type {type(data).__name__} cannot be written: give a DataFrame of pandas, "
            "polars or pyarrow"
        ) from None
    with_codebook = attached(declared, table)
    # pandas reads this back as the attributes of a frame.
    pandas_attrs = json.dumps({KEY: with_codebook.schema.metadata[KEY.encode()].decode()})
    buffer = BytesIO()
    parquet.write_table(
        with_codebook.replace_schema_metadata(
            {**with_codebook.schema.metadata, _OF_PANDAS: pandas_attrs}
        ),
        buffer,
    )
    write_whole(target, buffer.getvalue(), overwrite=overwrite)


def codebook_of_table(data: object) -> object:
    """Return the plain values attached to a table in memory, None without a codebook.

    CodebookError if they are not JSON, or of another version.
    """
    import narwhals.stable.v2 as nw

    data = nw.to_native(data, pass_through=True)
    if nw.dependencies.is_pandas_dataframe(data):
        return _codebook_entry(data.attrs)
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return _of_schema(data.schema)
    return None


def codebook_of_file(path: Path) -> object:
    """Return the plain values in the footer of a Parquet file; None without a codebook."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return None
    try:
        schema = parquet.read_schema(path)
    except (OSError, pa.ArrowException):
        return None
    return _of_schema(schema)


def _of_schema(schema: pa.Schema) -> object:
    metadata = dict(schema.metadata or {})
    pandas_attrs = metadata.pop(_OF_PANDAS, b"{}")
    fields = {name.decode(errors="replace"): text for name, text in metadata.items()}
    plain = _codebook_entry(fields)
    if plain is not None or _ANY_VERSION.encode() not in pandas_attrs:
        return plain
    return _codebook_entry(_parsed(pandas_attrs))


def _codebook_entry(fields: Any) -> object:
    names = [name for name in fields if isinstance(name, str) and name.startswith(_ANY_VERSION)]
    if KEY in names:
        return _parsed(fields[KEY])
    if names:
        raise CodebookError(
            f"the table carries a codebook of another version, {names[0]!r}, and only {KEY!r} is "
            "read: give codebook=, or attach it again"
        )
    return None


def _parsed(text: object) -> object:
    content = text.encode(errors="replace") if isinstance(text, str) else text
    try:
        if not isinstance(content, bytes) or len(content) > MOST_CHARACTERS:
            raise FrameError("it is not text, or too long")
        return parse(content)
    except FrameError as error:
        raise CodebookError(
            f"the codebook attached to the table cannot be read ({error}): give codebook=, "
            "or attach it again"
        ) from None
