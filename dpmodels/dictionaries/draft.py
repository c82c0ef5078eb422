"""Drafts: codebooks in which some bounds or levels are still unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dpmodels import column_roles
from dpmodels.arguments import checked_fields
from dpmodels.atomic_files import write_whole
from dpmodels.codebook import Codebook, as_html, as_text, check_name, read_json
from dpmodels.dictionaries.entry import UNKNOWN, Entry, entry_of, joined, plain_of
from dpmodels.errors import CodebookError, did_you_mean, shorten
from dpmodels.labels import plain
from dpmodels.levels import check_writable
from dpmodels.typing import AnyPath

# A formula that names all variables, or those of a name pattern.
ALL_NAMES: Final = re.compile(r"(?<![\w.)\]])\.(?![\w.])|\b(?:starts_with|ends_with|contains)\s*\(")


@checked_fields("dp.Draft")
class Draft(Mapping[str, Entry]):
    """A draft codebook: declarations from public sources, with ``?`` for unknown facts.

    Made by ``dp.codebook.draft``. It may be given to a verb as a codebook; there, and in
    :meth:`codebook`, a ``?`` is refused by name.

    Parameters
    ----------
    entries : mapping
        Known facts of each variable, by name.
    source : str, optional
        Where it comes from, for printing.
    person : str, optional
        The column that says whose a row is, as of a codebook.
    identifiers : mapping, optional
        Columns of ids, by name; a complete entry of the same name makes it a variable.
    design : SurveyDesign, optional
        How the rows were sampled, as of a codebook.

    Examples
    --------
    >>> import dpmodels as dp
    >>> draft = dp.codebook.draft({"age": "int64", "smokes": "bool"})
    >>> print(draft)
    variable  type     declared
    age       integer  ?
    smokes    boolean  False | True
    Not known (?): 'age'; draft.complete(age=(lower, upper))
    >>> draft.complete(age=(0, 110)).codebook()["age"] == dp.Integer(0, 110)
    True
    """

    def __init__(
        self,
        entries: Mapping[str, Entry],
        source: str = "",
        person: str | None = None,
        identifiers: Mapping[str, column_roles.Identifier] | None = None,
        design: column_roles.SurveyDesign | None = None,
    ) -> None:
        for name, entry in entries.items():
            check_name(name)
            for text in (entry.label, entry.unit):
                check_writable(f"variable {name!r}: label or unit", text)
        ids = dict(identifiers or {})
        self._entries = {
            name: Entry.of(entry.variable(name)) if entry.is_complete else entry
            for name, entry in entries.items()
            if entry.is_complete or name not in ids
        }
        self.source = source
        self.person = column_roles.checked_person(person)
        self.design = design
        self.identifiers = {name: ids[name] for name in ids if name not in self._entries}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Draft):
            return False
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Mapping[str, object]) -> Draft:
        """Merge two drafts; a CodebookError names the variable where they disagree."""
        roles = column_roles.Roles.of(self).joined(column_roles.Roles.of(other))
        right = other if isinstance(other, Draft) else Draft(of_declared(other))
        try:
            entries = {
                name: joined(name, self[name], right[name]) for name in self if name in right
            }
        except CodebookError as error:
            where = " and ".join(draft.source or "the declarations" for draft in (self, right))
            raise CodebookError(f"{where}: {error}") from None
        entries = {**self, **right, **entries}
        sources = dict.fromkeys(filter(None, (self.source, right.source)))
        return Draft(entries, ", ".join(sources), *roles)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the incomplete variables."""
        return tuple(name for name, entry in self.items() if not entry.is_complete)

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Names of the columns of ids, the person's included."""
        person = () if self.person is None else (self.person,)
        return tuple(dict.fromkeys((*self.identifiers, *person)))

    def complete(self, variables: Mapping[str, object] | None = None, /, **named: object) -> Draft:
        """Return the draft with declarations in place of its ranges or levels.

        Parameters
        ----------
        variables : mapping, optional
            Declarations by name, for names that are not Python identifiers.
        **named
            Declarations by name, as for ``dp.codebook``. A variable that the draft
            calls an integer stays one; its label, unit and missing codes are kept
            where the declaration gives none. An identifier becomes a variable; the
            column of persons stays what it is.

        Returns
        -------
        Draft

        Raises
        ------
        CodebookError
            If the draft has no such variable, or the declaration cannot be used.
        """
        declared = {**(variables or {}), **named}
        for name in declared:
            if name not in self.identifiers:
                self._require(name)
        completed = {
            name: self.get(name, Entry()).completed(name, declaration)
            for name, declaration in declared.items()
        }
        return self._of({**self._entries, **completed})

    def select(self, names: Iterable[str]) -> Draft:
        """Return the draft of some of the variables.

        Raises
        ------
        CodebookError
            If a name is not in the draft.
        """
        selected = list(names)
        for name in selected:
            self._require(name)
        return self._of({name: self[name] for name in selected})

    def _of(self, entries: Mapping[str, Entry]) -> Draft:
        return Draft(entries, self.source, self.person, self.identifiers, self.design)

    def codebook(self) -> Codebook:
        """Return the codebook.

        Raises
        ------
        CodebookError
            While a variable is incomplete; the message names it.
        """
        self._refuse(self.unknown)
        return self.declared

    def codebook_for(self, formula: object) -> Codebook:
        """Return the known declarations, if they are all that a formula needs.

        Raises
        ------
        CodebookError
            If a variable that the formula names is incomplete, or any variable where it names all.
        """
        text = formula if isinstance(formula, str) else ""
        unknown = [name for name in self.unknown if _names(text, name)]
        self._refuse(self.unknown if not text or ALL_NAMES.search(text) else unknown)
        return self.declared

    @property
    def declared(self) -> Codebook:
        """The complete declarations."""
        variables = {name: e.variable(name) for name, e in self.items() if e.is_complete}
        return Codebook({**variables, **self.identifiers}, person=self.person, design=self.design)

    def to_dict(self) -> dict[str, dict[str, object]]:
        """Return plain values, as written to JSON: those of a codebook, and ``"?"``."""
        variables = {name: plain_of(name, entry) for name, entry in self.items()}
        return column_roles.Roles.of(self).beside(variables)

    @classmethod
    def from_dict(cls, plain: Mapping[str, object], source: str = "") -> Draft:
        """Read what :meth:`to_dict` wrote, or what a codebook's did.

        Raises
        ------
        CodebookError
            If it is neither.
        """
        entries, roles = column_roles.without_roles(plain)
        variables = {name: entry_of(name, value) for name, value in entries.items()}
        return cls(variables, source, *roles)

    def save(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write the draft as JSON, whole or not at all; without ``?`` it is a codebook's file.

        Raises
        ------
        ArgumentError, FrameError
            If it cannot be written, or the file is there already and `overwrite` is False.
        """
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        write_whole(path, text.encode(), overwrite=overwrite)

    @classmethod
    def load(cls, path: AnyPath) -> Draft:
        """Read a draft, or a codebook, from JSON.

        Raises
        ------
        CodebookError
            If the file is missing, is not JSON or declares something unusable.
        """
        return cls.from_dict(read_json(path), str(path))

    def _require(self, name: str) -> None:
        if name not in self:
            raise CodebookError(
                f"the draft has no variable {shorten(repr(name))}{did_you_mean(name, self)}: "
                "complete what it has, or add others by draft | dp.codebook(...)"
            )

    def _refuse(self, unknown: Iterable[str]) -> None:
        names = list(unknown)
        if names:
            raise CodebookError(
                f"the draft does not know the bounds or levels of {_listed(names)}: declare them "
                f"from knowledge, never from rows: {self._instead(names)}, or in a file "
                'in place of "?"; or leave variables out: draft.select([...])'
            )

    def _instead(self, names: list[str]) -> str:
        words = ", ".join(self[name].instead(name) for name in names[:3])
        return f"draft.complete({words}{', ...' if len(names) > 3 else ''})"

    def _rows(self) -> list[tuple[str, ...]]:
        rows = [
            (name, entry.kind or UNKNOWN, entry.describe(name), entry.unit, entry.label)
            for name, entry in self.items()
        ]
        return rows + column_roles.Roles.of(self).lines()

    def _notes(self) -> list[str]:
        names = list(self.unknown)
        left = f"Not known (?): {_listed(names)}; {self._instead(names)}" if names else ""
        ids = next(iter(self.identifiers), "")
        persons = (
            f"No column of persons is marked: if {ids!r} identifies them, write person={ids!r}"
            if ids and self.person is None
            else ""
        )
        skipping = [name for name, entry in self.items() if entry.skips_codes]
        skipped = (
            f"Not every code from the first on has a label: {_listed(skipping)}. Rows with other "
            f"codes are incomplete; if there are such, declare numbers: draft.complete("
            f"{next(iter(skipping))}=dp.Integer(lower, upper, missing=[...]))"
            if skipping
            else ""
        )
        source = self.source and f"From {self.source}"
        return [plain(note) for note in (source, left, skipped, persons) if note]

    def __repr__(self) -> str:
        return "\n".join([as_text(self._rows()), *self._notes()])

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return as_html(self._rows()) + notes


def of_declared(declared: Mapping[str, object]) -> dict[str, Entry]:
    """Return the entries of declarations, as ``dp.codebook`` takes them."""
    return {name: Entry.of(variable) for name, variable in Codebook(declared).items()}


def _names(formula: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", formula) is not None


def _listed(names: list[str]) -> str:
    quoted = ", ".join(repr(name) for name in names[:10])
    return f"{quoted} and {len(names) - 10} more" if len(names) > 10 else quoted


# The type of an entry that a dictionary declares to be an id.
IDENTIFIER: Final = "identifier"
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KEYS: Final = frozenset(("id", "ids", "uid", "uuid", "guid", "key", "ssn", "mrn"))
# Names without a break between their words.
_WHOLE: Final = frozenset(("caseid", "hhid", "recordid", "rowid", "seqn", "serialno", "pid"))
_PERSON: Final = (
    "person|people|individual|patient|subject|participant|respondent|user|customer|client|member|"
    "employee|student|pupil|insured"
)
_KEY: Final = "id|key|no|nr|uuid|guid"
_OF_PERSON: Final = re.compile(rf"(?:{_PERSON})s?(?:{_KEY})|id(?:{_PERSON})|pid|ssn|mrn")


def is_key_name(name: str) -> bool:
    """Whether a column's name is that of an id.

    >>> is_key_name("visit_id"), is_key_name("visitId"), is_key_name("paid")
    (True, True, False)
    """
    words = [word.casefold() for word in _WORDS.findall(name)]
    ends = {words[0], words[-1]} if words else set()
    return bool(ends & _KEYS) or "".join(words) in _WHOLE or is_person_name(name)


def is_person_name(name: str) -> bool:
    """Whether a column's name is that of an id of persons.

    >>> is_person_name("PatientID"), is_person_name("patients"), is_person_name("visit_id")
    (True, False, False)
    """
    return _OF_PERSON.fullmatch("".join(_WORDS.findall(name)).casefold()) is not None


def with_identifiers(entries: Mapping[str, Entry], source: str) -> Draft:
    """Return a draft in which ids are identifiers, and the only id of persons is the person.

    A column whose bounds or levels the source declares is a variable, whatever its name.
    """
    ids = {
        name: column_roles.Identifier(entry.missing, entry.label)  # type: ignore[arg-type]
        for name, entry in entries.items()
        if entry.kind == IDENTIFIER or (not entry.is_complete and is_key_name(name))
    }
    persons = [name for name in ids if is_person_name(name)]
    variables = {name: entry for name, entry in entries.items() if name not in ids}
    return Draft(variables, source, persons[0] if len(persons) == 1 else None, ids)
