"""``private_codebook``: what a call needs to release its own bounds and levels first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dpmodels.arguments import fraction, real
from dpmodels.codebook import Codebook
from dpmodels.dictionaries.draft import Draft
from dpmodels.dictionaries.entry import TYPES, Entry
from dpmodels.errors import ArgumentError, CodebookError, quoted
from dpmodels.levels import Level
from dpmodels.variables import Variable, as_variable

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
