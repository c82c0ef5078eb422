"""The codebook of a call: its argument, the one attached to the table, or that of dp.options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from dpmodels.codebook import Codebook, codebook_of_file, codebook_of_table
from dpmodels.dictionaries.draft import Draft
from dpmodels.dictionaries.private_codebook import PrivateCodebook, as_private
from dpmodels.errors import CodebookError, FormulaError
from dpmodels.formula.parse import parsed_formula, variables_in
from dpmodels.frames.parquet import SUFFIX, named_files
from dpmodels.options import current_settings
from dpmodels.request import difference

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
