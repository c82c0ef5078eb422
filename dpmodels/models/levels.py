"""``dp_levels``: private levels of undeclared variables."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_levels
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.sides import named
from dpmodels.mechanisms import LEVELS, LevelMechanism, choose_strategy
from dpmodels.mechanisms.counts.partition import LevelFacts
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.resolve_codebook import codebook_besides
from dpmodels.results.bounds import LevelsResult
from dpmodels.results.call import DescribedCall, TableCall


@verb
def dp_levels(
    formula: str,
    data: object = None,
    *,
    mechanism: str | LevelMechanism = "auto",
    **shared: Unpack[Shared],
) -> LevelsResult:
    """Find the levels of undeclared variables, where they have enough rows.

    Parameters
    ----------
    formula : str
        ``"~ town + job"``: columns of text or whole numbers.
    eps
        All variables share the guarantee. A delta well below 1/n is needed: it
        bounds the probability of showing a level that only one row has.
    codebook
        Only other variables need to be declared; those of the formula may be ``?``
        in a draft.
    mechanism : {"auto", "partition"} or instance
        Truncated geometric noise, which finds most.
    ledger
        A ledger takes such a release before any with Gaussian noise, as deltas of
        such releases add up: leave it the rest of its delta by a smaller one here.

    Returns
    -------
    LevelsResult
        Its ``codebook`` is what was declared with the levels that were found, and is public.

    Notes
    -----
    A level is a text of at most 100 printable characters or a whole number
    below 2**53; text that spells a number is that number, so that ``1``,
    ``"1"`` and ``"01"`` are one. Rows with any other cell, longer or blank
    text among them, count as incomplete for that variable, silently. Levels
    come sorted, whole numbers where all of them are.

    All levels are counted in memory, some 250 bytes each: where all values differ, as names do, 2.5
    GB for ten million rows. Such columns have no levels to find.

    References
    ----------
    .. [1] Desfontaines, D., Voss, J., Gipson, B. and Mandayam, C. (2022).
       "Differentially private partition selection." PoPETs 2022(1), 339-352.

    Examples
    --------
    >>> import dpmodels as dp
    >>> rows = {"town": ["Ulm"] * 400 + ["Bonn"] * 300 + ["Rust"]}
    >>> found = dp_levels("~ town", rows, eps=1.0, delta=1e-6)
    >>> found.levels["town"]
    ('Bonn', 'Ulm')
    >>> cb = dp.codebook(age=(0, 100)) | found.codebook
    >>> list(cb)
    ['age', 'town']
    """
    return run_verb("levels", levels_spec, formula, data, shared, mechanism, resolve=_besides)


def _besides(codebook: object, data: object, sites: object, _: str) -> Codebook:
    return codebook_besides(codebook, data, sites)


@spec_of(
    "levels",
    spends_delta=True,
    instead="undeclared levels cannot be counted together by sites that do not show each other "
    "their names; run dp.dp_levels at each site, whose rows are disjoint, and unite the levels",
)
def levels_spec(request: Request) -> VerbSpec[LevelsResult]:
    """Build the specification of a dp_levels call."""
    book = checked_codebook(request.codebook)
    text, names = named(request.formula, book)
    tables = tuple(TableCall((), (), measured=name) for name in names)
    return VerbSpec(
        request,
        DescribedCall(text, Codebook(), tables),
        partial(LevelsResult, declared=book),
        unbound_levels(text, names),
        LevelFacts(len(names), request.adjacency),
        lambda mechanism, _: choose_strategy(mechanism, LEVELS, lambda: ("partition", "")),
    )
