"""The codebook of a call: its argument, the one attached to the table, or that of dp.options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final

from dpmodels.arguments import fraction, real
from dpmodels.codebook import Codebook, codebook_of_file, codebook_of_table
from dpmodels.dictionaries.draft import Draft
from dpmodels.dictionaries.entry import TYPES, Entry
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, quoted
from dpmodels.formula.parse import parsed_formula, variables_in
from dpmodels.frames.parquet import SUFFIX, named_files
from dpmodels.levels import Level
from dpmodels.options import current_settings
from dpmodels.request import difference
from dpmodels.variables import Variable, as_variable

# A private codebook: what a call needs to release its own bounds and levels first.

WORD: Final = "private"
# Choices: the share of the budget for bounds and levels, and the public bounds of a number.
SHARE: Final = 0.15
LIMIT: Final = 1e9
# Public bounds of a day: a choice.
DAYS: Final = ("1800-01-01", "2199-12-31")
# Types whose levels are released, and others whose bounds are.
LEVELLED, LOGICAL = "categorical", "boolean"
_BOUNDED: Final = ("numeric", "integer", "date")


@dataclass(frozen=True, repr=False)
class PrivateCodebook:
    """Types and declarations that are public, and how the rest is released."""

    draft: Draft
    share: float = SHARE
    limit: float = LIMIT

    def __repr__(self) -> str:
        return f"private codebook ({self.text})\n{self.draft}"

    @property
    def text(self) -> str:
        """How much the released bounds and levels cost, for printing."""
        return f"{100 * self.share:.3g} % of the budget"

    @property
    def declared(self) -> Codebook:
        """The complete declarations."""
        return self.draft.declared

    def wide(self, name: str, kind: str) -> Variable:
        """Return a declaration with public bounds, far too wide, where none are known."""
        entry = replace(self.draft.get(name, Entry()), kind=kind)
        lower, upper = DAYS if kind == "date" else (-self.limit, self.limit)
        lower, upper = (
            public if end is None else end
            for end, public in ((entry.lower, lower), (entry.upper, upper))
        )
        return replace(entry, lower=lower, upper=upper).variable(name)

    def with_levels(self, name: str, levels: tuple[Level, ...]) -> Variable:
        """Return the declaration of a category with these levels."""
        entry = replace(self.draft.get(name, Entry()), kind=LEVELLED, labels=())
        named = tuple(level for level in levels if level not in entry.missing)
        return replace(entry, levels=named).variable(name)


def private_codebook(
    variables: Mapping[str, object] | None = None,
    /,
    *,
    share: float = SHARE,
    limit: float = LIMIT,
    **named: object,
) -> PrivateCodebook:
    """Let a verb release bounds and levels first, from a share of its budget.

    For ``codebook=`` of a verb. ``codebook="private"`` is ``dp.private_codebook()``.

    Parameters
    ----------
    variables : Codebook, Draft or mapping, optional
        What is public: types or declarations by name, or a draft, of which a ``?`` is released.
    share : float
        The fraction of the budget for bounds and levels, in (0, 1).
    limit : float
        Public bounds of numbers, ``-limit`` and ``limit``, from which the search starts. Numbers
        beyond are clipped to them; scales below a trillionth of it are not found.
    **named
        Types or declarations by name: ``"numeric"``, ``"integer"``, ``"date"``, ``"boolean"`` or
        ``"categorical"``, or what :class:`dp.codebook` takes. Parquet and Arrow
        files and stored tables of databases declare types. Elsewhere types are needed: those of
        tables in memory (pandas, polars, Arrow, NumPy), CSV files and queries may be inferred from
        cells.

    Returns
    -------
    PrivateCodebook

    Raises
    ------
    ArgumentError, CodebookError
        If a share, a limit, a type or a declaration is invalid.

    Notes
    -----
    The call first releases bounds as :func:`dp_bounds` and levels as :func:`dp_levels`, then itself
    by what is left, so that all together satisfy the guarantee. Levels need a delta, half of it.
    ``fit.request.codebook`` is what was released, free for later calls. Declared bounds and levels
    cost nothing and lose nothing: prefer them.

    Examples
    --------
    >>> import dpmodels as dp
    >>> rows = {"age": list(range(18, 90)) * 100, "sex": ["F", "M"] * 3600}
    >>> types = dp.private_codebook(age="integer", sex="categorical", share=0.2)
    >>> fit = dp.dp_mean("age ~ sex", rows, codebook=types, eps=1.0, delta=1e-6)
    >>> fit.request.codebook["sex"].levels, fit.request.codebook["age"].upper < 200
    (('F', 'M'), True)
    """
    of = fraction("share", share, ", such as 0.15")
    bound = real(limit)
    if not 1e-6 <= bound <= 1e15:
        raise ArgumentError(f"limit={quoted(limit)}: expected a number from 1e-6 to 1e15")
    person = getattr(variables, "person", None)
    identifiers = getattr(variables, "identifiers", {})
    declared = {**(variables or {}), **named}
    entries = {name: _entry(name, value) for name, value in declared.items()}
    return PrivateCodebook(Draft(entries, "", person, identifiers), of, bound)


def as_private(codebook: object) -> PrivateCodebook | None:
    """Return what ``codebook=`` of a call says about a private codebook; None for any other."""
    if isinstance(codebook, str) and codebook == WORD:
        return private_codebook()
    return codebook if isinstance(codebook, PrivateCodebook) else None


def bounded(kind: str) -> bool:
    """Whether a type of variable has bounds to be released."""
    return kind in _BOUNDED


def _entry(name: str, value: object) -> Entry:
    if isinstance(value, Entry):
        return value
    if isinstance(value, str):
        if value not in TYPES:
            raise CodebookError(
                f"variable {name!r}: {quoted(value)} is not a type; expected one of "
                f"{', '.join(map(repr, TYPES))}, or a declaration such as (0, 100)"
            )
        return Entry(kind=value)
    return Entry.of(as_variable(name, value))


# The codebook of a call, wherever it is.

Resolved = Codebook | PrivateCodebook | Mapping[str, object] | str | PathLike[str] | None
"""What ``codebook=`` may be: a codebook, a draft, declarations by name, or a file of them."""


def codebook_of_call(codebook: object, data: object, sites: object, formula: object) -> Codebook:
    """Return the codebook for a formula; CodebookError, before a row is read, without one.

    `codebook` is the argument of the call: a codebook, a draft, declarations by name, the path of
    one of these, or None for the one attached to `data` or the `sites`, else that of
    ``dp.options``.
    """
    source: object = _codebook_source(codebook, data, sites)
    if source is None:
        raise CodebookError(_missing_codebook(formula))
    if isinstance(source, Codebook):
        return source
    if as_private(source) is not None:
        raise CodebookError(
            "a private codebook is released by a verb with data=, such as dp.dp_pca(..., "
            'codebook="private"), and by draft_codebook() of a session: give a codebook here'
        )
    if isinstance(source, str | PathLike):
        from dpmodels.dictionaries.codebook_class import read

        source = read(source)
    if isinstance(source, Draft):
        return source.codebook_for(formula)
    if isinstance(source, Mapping):
        return Codebook(source)
    raise CodebookError(
        f"codebook= is {type(source).__name__}; expected a dp.codebook with the public bounds or "
        'levels of each variable, for example dp.codebook(age=(0, 100), sex=["F", "M"])'
    )


def codebook_besides(codebook: object, data: object, sites: object, formula: object) -> Codebook:
    """Return the codebook as :func:`codebook_of_call` does, or an empty one."""
    source = _codebook_source(codebook, data, sites)
    return Codebook() if source is None else codebook_of_call(source, data, sites, "~ 1")


def _codebook_source(codebook: object, data: object, sites: object) -> object:
    if codebook is not None:
        return codebook
    attached, setting = _attached(data, sites), current_settings()
    if attached is None:
        return setting.codebook
    if setting.codebook is not None:
        _require_agreement(attached, codebook_of_call(setting.codebook, None, None, "~ 1"))
    persons = {setting.person, getattr(setting.adjacency, "person", None)} - {None}
    if setting.ledger is not None:
        persons |= {setting.ledger.adjacency.person} - {None}
    for person in persons - {attached.person}:
        if attached.person is not None or setting.person is None:
            raise CodebookError(
                f"dp.options protects persons, person={person!r}, and the codebook attached to the "
                f"table says person={attached.person!r}: write codebook= in the call, or attach "
                "one with the same person="
            )
    return attached


def _require_agreement(attached: Codebook, setting: Codebook) -> None:
    shared = [name for name in attached if name in setting]
    first = next((name for name in shared if attached[name] != setting[name]), None)
    ids = {**setting.identifiers, **attached.identifiers}
    if first is None and setting.person == attached.person and ids == dict(attached.identifiers):
        return
    what = f"variable {first!r}" if first is not None else "the column of persons"
    reason = difference(setting.to_dict(), attached.to_dict())
    if setting.person != attached.person and first is None:
        reason = f"dp.options says person={setting.person!r}, the table person={attached.person!r}"
    raise CodebookError(
        f"the codebook attached to the table and that of dp.options do not agree on {what} "
        f"({reason}): write codebook= in the call, or attach the codebook of dp.options"
    )


def _attached(data: object, sites: object) -> Codebook | None:
    """Return the one codebook that tables carry; CodebookError where two are not the same."""
    if isinstance(sites, Mapping):
        tables = [(f"site {name!r}", table) for name, table in sites.items()]
    else:
        tables = [("the table", data)]
    books = [pair for where, table in tables for pair in _books(where, table)]
    for where, book in books[1:]:
        first, first_book = books[0]
        if book != first_book:
            raise CodebookError(
                f"{first} and {where} carry codebooks that are not the same ("
                f"{difference(first_book.to_dict(), book.to_dict())}): give one by codebook="
            )
    return books[0][1].beside_table() if books else None


def _books(where: str, data: object) -> Iterator[tuple[str, Codebook]]:
    """Yield the codebooks of a table, of a list of them or of Parquet files, with their place."""
    files = named_files(data)
    tables = data if isinstance(data, list | tuple) and not files else [data]
    parquet = [file for file in files if file.suffix.lower() == SUFFIX]
    plain = [(f"{where}, {file.name!r}", codebook_of_file(file)) for file in parquet]
    plain += [(where, codebook_of_table(table)) for table in tables if not files]
    lacking = [place for place, book in plain if book is None]
    if lacking and len(lacking) < len(plain):
        raise CodebookError(
            f"{where}: {len(plain) - len(lacking)} of {len(plain)} parts carry a codebook, and the "
            "others carry none: give one by codebook=, or attach it to every part"
        )
    for place, book in plain:
        if book is not None:
            yield place, _conforming(place, book)


def _conforming(where: str, plain: Any) -> Codebook:
    try:
        return Codebook.from_dict(plain)
    except CodebookError as error:
        raise CodebookError(
            f"the codebook attached to {where} is invalid: {error}; give codebook=, or attach "
            "it again"
        ) from None


def _missing_codebook(formula: object) -> str:
    """Say what a codebook is, how to write the one of this formula, and where to put it."""
    names = _variables(formula) or ["age", "income"]
    categories = re.findall(r"\bC\(\s*(\w+)", str(formula))
    forms = {name: '["low", "high"]' if name in categories else "(lower, upper)" for name in names}
    declarations = [
        f"{name}={form}" if name.isidentifier() else f"**{{{name!r}: {form}}}"
        for name, form in list(forms.items())[:4]
    ]
    ellipsis = ", ..." if len(names) > 4 else ""
    return (
        "no codebook: a codebook declares the public bounds or levels of each variable, from "
        "knowledge and never from the rows.\n"
        f"Write codebook=dp.codebook({', '.join(declarations)}{ellipsis}), with a list of levels "
        'for a category, such as ["low", "high"].\n'
        "It may also be attached to the table, table = cb.attach(table), be set once, "
        'dp.options(codebook=cb), or be a file, codebook="cb.json"; dp.codebook.draft("study.sav") '
        'reads data dictionaries, and codebook="private" releases bounds and levels first.'
    )


def _variables(formula: object) -> list[str]:
    try:
        parsed = parsed_formula(formula, ())  # type: ignore[arg-type]
        factors = (code for term in (*parsed.response, *parsed.predictors) for code in term)
        return list(dict.fromkeys(name for code in factors for name in variables_in(code)))
    except FormulaError:
        return []
