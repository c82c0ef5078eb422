"""Which results are of one release, and what is known of several: of budgets, and of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmodels.digest import origin
from dpmodels.errors import shorten
from dpmodels.privacy import Ledger
from dpmodels.privacy.lines import RELEASED, SHOWN
from dpmodels.privacy.register import convergence_notes
from dpmodels.report import count
from dpmodels.results.base import Result
from dpmodels.results.etable_columns import Column
from dpmodels.variables import Boolean, Categorical, Variable


def release_of(fit: Result) -> str:
    """Return the digest, as tables show it, of the release that a result is of or a part of."""
    return origin(fit.release)[:SHOWN]


def together(columns: Sequence[Column]) -> dict[str, list[str]]:
    """Return the names of the results, in the table's words, by their release."""
    found: dict[str, dict[str, None]] = {}
    for column in columns:
        found.setdefault(release_of(column.result), {})[column.model] = None
    return {own: list(names) for own, names in found.items()}


def accounts(columns: Sequence[Column], ledger: Ledger | None) -> tuple[str, ...]:
    """Say what was paid once, and what the budgets come to, where a ledger tells."""
    releases = together(columns)
    notes = [
        f"{listed(names)} are of one release, whose budget was paid once."
        for names in releases.values()
        if len(names) > 1
    ]
    if ledger is not None:
        return (*notes, *_of_ledger(releases, ledger))
    if len(releases) > 1:
        notes.append(
            "Budgets of different releases are not added up here: of releases of one table their "
            "ledger tells what they come to, etable(..., ledger=)."
        )
    return tuple(notes)


def _of_ledger(releases: dict[str, list[str]], ledger: Ledger) -> list[str]:
    register = ledger.register()
    kept = register[register["state"] == RELEASED]["digest"]
    known = {str(own)[:SHOWN]: int(str(number)) for number, own in kept.items()}
    charges = sorted(known[own] for own in releases if own in known)
    others = [name for own, names in releases.items() if own not in known for name in names]
    many = f"{len(register)} charge{'s' * (len(register) != 1)}"
    notes = [f"Ledger, all {many} together: {ledger.describe()}."]
    notes += convergence_notes(register["mechanism"])
    if charges:
        listing = ", ".join(map(str, charges))
        notes[0] += (
            f" Columns here are of {'charge' if len(charges) == 1 else 'charges'} {listing}."
        )
    if others:
        notes.append(f"{listed(others)}: not of this ledger, and in no total here.")
    return notes


def apart(columns: Sequence[Column]) -> tuple[str, ...]:
    """Say by which public facts the results are of different tables, or read them differently."""
    return (*_numbers(columns), *_declarations(columns))


def _numbers(columns: Sequence[Column]) -> list[str]:
    """Compare public numbers of what is counted in the same way."""
    found: dict[tuple[Any, str], dict[int, dict[str, None]]] = {}
    for column in columns:
        release = column.result.release
        if release.rows is not None:
            whose, many = release.adjacency.person, release.rows // release.adjacency.design_effect
            many = release.rows if whose is None else many
            what = "rows" if whose is None else "persons"
            found.setdefault((whose, what), {}).setdefault(many, {})[column.model] = None
    return [
        "Different tables, by the public number of "
        f"{what}: {'; '.join(f'{listed(list(names))} of {count(n)}' for n, names in own.items())}."
        for (_, what), own in found.items()
        if len(own) > 1
    ]


def _declarations(columns: Sequence[Column]) -> list[str]:
    """Compare what codebooks declare of variables of the same name, but for words."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for column in columns:
        for name, variable in column.result.call.codebook.items():
            own = found.setdefault(name, {})
            own.setdefault(_declared(variable), {})[column.model] = None
    return [
        f"{name}: {'; '.join(f'{said} in {listed(list(one))}' for said, one in own.items())}."
        for name, own in found.items()
        # A number of two values is a category where it is explained as one.
        if len({said.partition(" ")[0] for said in own}) == 1 < len(own)
    ]


def _declared(variable: Variable) -> str:
    """Return the public range or levels, after what they are."""
    if isinstance(variable, Categorical | Boolean):
        return f"levels {shorten(', '.join(map(str, variable.levels)))}"
    return f"declared {variable.lower} to {variable.upper}"


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
