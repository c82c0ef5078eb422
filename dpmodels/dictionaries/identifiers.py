"""Columns of ids in a draft: by their names and declared types, never by their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dpmodels.codebook_person import Identifier
from dpmodels.dictionaries.draft import Draft
from dpmodels.dictionaries.entry import Entry

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
        name: Identifier(entry.missing, entry.label)  # type: ignore[arg-type]
        for name, entry in entries.items()
        if entry.kind == IDENTIFIER or (not entry.is_complete and is_key_name(name))
    }
    persons = [name for name in ids if is_person_name(name)]
    variables = {name: entry for name, entry in entries.items() if name not in ids}
    return Draft(variables, source, persons[0] if len(persons) == 1 else None, ids)
