"""The columns that identify persons: checked, joined, written and read with declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dpmodels.errors import CodebookError, quoted
from dpmodels.levels import check_texts, check_writable, said_missing, sequence
from dpmodels.person_ids import canonical_id
from dpmodels.typing import Plain

_TYPE: Final = "identifier"


@dataclass(frozen=True)
class Identifier:
    """A column of ids, and which of them are missing values.

    Parameters
    ----------
    missing : sequence of str or int, optional
        Ids that count as missing, such as ``["NA", -9]``, besides nulls, NaN and empty text. They
        are kept as canonical ids.
    label : str, optional
        What the column is, for printing.

    Raises
    ------
    CodebookError
        If `missing` is not a list of ids, or the label is not text that can be printed.

    Notes
    -----
    The declaration says how ids are read. It does not protect persons: ``person="id"`` does, in the
    codebook or in the call. An identifier is not a variable: formulas cannot use it, ``.`` leaves
    it out, and it is listed in ``codebook.identifiers``.

    Two records belong to one person if and only if their *canonical ids* are equal, and the printed
    number of persons counts those:

    - Whole numbers of any type, and floats that are whole and below 2**53, are their decimal
      digits. Other floats are their ``repr``.
    - Text is in Unicode's normal form C, without white space, byte order marks and control
      characters at the ends. Case and leading zeros are kept, so that ``7``, ``7.0`` and ``"7"``
      are one id, and ``"007"``, ``"7.0"``, ``"1.10"``, ``"12E007"`` and ``"NA"`` are others. Bytes
      are read as UTF-8, and UUIDs as text.
    - Logical values are ``"True"`` and ``"False"``, dates and times are ISO 8601 text.

    Rows whose id is missing, or of another type (a list, a duration), belong to nobody and do not
    count.

    Software that guesses types may merge ids before they come here: ``pandas.read_csv`` reads
    ``007`` as 7, long whole numbers beside an empty cell as floats, which have 53 bits, and ``NA``
    as missing. Read ids as text, ``dtype={"id": str}`` with ``keep_default_na=False``, or give the
    path of the file.

    Examples
    --------
    >>> import dpmodels as dp
    >>> print(dp.codebook(age=(0, 100), id=dp.Identifier(missing=["NA", -9]), person="id"))
    variable  type        declared
    age       numeric     0 to 100
    id        identifier  person; missing: NA, -9
    """

    missing: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        check_texts(self.label)
        codes = sequence("missing", self.missing)
        ids = tuple(map(canonical_id, codes))
        for code, canonical in zip(codes, ids, strict=True):
            if not canonical:
                raise CodebookError(
                    f"missing= lists {quoted(code)}, which is not an id: expected text or whole "
                    "numbers; nulls, NaN and empty text are always missing"
                )
            check_writable("missing id", canonical)
        object.__setattr__(self, "missing", tuple(dict.fromkeys(ids)))

    def to_plain(self) -> dict[str, object]:
        """Return JSON values."""
        entry = {"type": _TYPE, "missing": list(self.missing), "label": self.label}
        return {key: value for key, value in entry.items() if value}

    @classmethod
    def from_plain(cls, name: str, entry: Mapping[str, Plain]) -> Identifier:
        """Read what :meth:`to_plain` wrote."""
        options = {key: value for key, value in entry.items() if key != "type"}
        if not set(options) <= {"missing", "label"}:
            raise CodebookError(f'variable {name!r}: an identifier has "missing" and "label" alone')
        try:
            return cls(**options)
        except CodebookError as error:
            raise CodebookError(f"variable {name!r}: {error}") from None


def without_identifiers(
    declared: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, Identifier]]:
    """Return the declarations of variables, and those of identifiers."""
    identifiers = {
        name: entry if isinstance(entry, Identifier) else Identifier.from_plain(name, entry)
        for name, entry in declared.items()
        if isinstance(entry, Identifier)
        or (isinstance(entry, Mapping) and entry.get("type") == _TYPE)
    }
    variables = {name: entry for name, entry in declared.items() if name not in identifiers}
    return variables, identifiers


def checked_person(person: object) -> str | None:
    """Return the name of the column of persons; a variable of that name is a frequent mistake."""
    if person is None:
        return None
    if not isinstance(person, str) or not person.strip():
        raise CodebookError(
            f"person={quoted(person)}: expected the name of the column of person ids, such as "
            'person="id"; a variable that is called person is declared by '
            'dp.codebook({"person": (0, 9)})'
        )
    check_writable("person", person)
    return person


def without_person(declared: Mapping[str, object]) -> tuple[dict[str, object], str | None]:
    """Return the entries of variables, and the name of the column of person ids."""
    entries, persons = dict(declared), list[str]()
    for name, entry in declared.items():
        if isinstance(entry, Mapping) and "person" in entry:
            if entry["person"] is not True or persons:
                raise CodebookError(f'{name!r}: "person" must be true, and at one column only')
            persons.append(name)
            entries[name] = {word: value for word, value in entry.items() if word != "person"}
            if not entries[name]:
                del entries[name]
    return entries, next(iter(persons), None)


def with_person(declared: dict[str, Plain], person: str | None) -> dict[str, object]:
    """Return the plain values of variables, with the column of person ids marked."""
    if person is None:
        return declared
    return {**declared, person: {**declared.get(person, {}), "person": True}}


def joined_person(left: str | None, right: str | None) -> str | None:
    """Return the column of persons of two codebooks, at least one of which may lack it."""
    if left is not None and right is not None and left != right:
        raise CodebookError(
            f"codebooks with person={left!r} and person={right!r} cannot be combined: rows have "
            "one column of person ids"
        )
    return right if left is None else left


def of_person(person: str | None, identifiers: Mapping[str, Identifier]) -> list[tuple[str, ...]]:
    """Return the lines of identifiers and of the column of persons among those of variables."""
    lines = list[tuple[str, ...]]()
    for name, declared in identifiers.items():
        role = "person" if name == person else "identifies rows"
        lines.append((name, _TYPE, role + said_missing(declared.missing), "", declared.label))
    if person is not None and person not in identifiers:
        lines.append((person, "person", "identifies persons", "", ""))
    return lines
