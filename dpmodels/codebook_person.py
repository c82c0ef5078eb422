"""The column that says whose a row is: checked, joined, written and read with declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpmodels.errors import CodebookError, said
from dpmodels.levels import check_writable


def checked_person(person: object) -> str | None:
    """Return the name of the column of persons; a variable of that name is a frequent mistake."""
    if person is None:
        return None
    if not isinstance(person, str) or not person.strip():
        raise CodebookError(
            f"person={said(person)}: expected the name of the column that says whose a row is, "
            'such as person="id"; a variable that is called person is declared by '
            'dp.codebook({"person": (0, 9)})'
        )
    check_writable("person", person)
    return person


def without_person(declared: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the entries of variables, and the name of the one that says whose a row is."""
    entries, persons = dict(declared), list[str]()
    for name, entry in declared.items():
        if isinstance(entry, Mapping) and "person" in entry:
            if entry["person"] is not True or persons:
                raise CodebookError(
                    f'{name!r}: "person" is true at one column, the one that says whose a row is'
                )
            persons.append(name)
            entries[name] = {word: own for word, own in entry.items() if word != "person"}
            if not entries[name]:
                del entries[name]
    return entries, next(iter(persons), None)


def with_person(declared: dict[str, Any], person: str | None) -> dict[str, Any]:
    """Return the plain values of variables, and which column says whose a row is."""
    if person is None:
        return declared
    return {**declared, person: {**declared.get(person, {}), "person": True}}


def joined_person(one: str | None, other: str | None) -> str | None:
    """Return the column of persons of two codebooks, of which one may name none."""
    if one is not None and other is not None and one != other:
        raise CodebookError(
            f"codebooks with person={one!r} and person={other!r} do not go together: one column "
            "says whose a row is"
        )
    return other if one is None else one


def of_person(person: str | None) -> list[tuple[str, ...]]:
    """Return the line of the column of persons among those of variables."""
    return [] if person is None else [(person, "person", "whose a row is", "", "")]
