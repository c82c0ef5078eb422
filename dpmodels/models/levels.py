"""``dp_levels``: private levels of variables that nobody declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dpmodels.codebook import Codebook
from dpmodels.declared import Declared, declared_besides
from dpmodels.design.levels import unbound_levels
from dpmodels.entry_point import entry_point
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.sides import named
from dpmodels.frames.delimited import CsvMode
from dpmodels.mechanisms import LEVELS, LevelMechanism, choose
from dpmodels.mechanisms.counts.partition import LevelFacts
from dpmodels.models.crossing import Way, cross
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger
from dpmodels.question import Question, asked
from dpmodels.released import LevelsRelease
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.levels import LevelsResult
from dpmodels.sites import PROTOCOLS, SiteProtocol, gathered


@entry_point
def dp_levels(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Declared = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    mechanism: str | LevelMechanism = "auto",
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
) -> LevelsResult:
    """Find the levels of variables that nobody declared, where they have enough rows.

    Parameters
    ----------
    formula : str
        ``"~ town + job"``: columns of text or whole numbers.
    data, sites, protocol
        The rows, or those of each site and who sees what, as for :func:`dp_pca`.
    codebook : Codebook, optional
        What else is declared; the variables need not be, and may be ``?`` in a draft.
    eps, delta, budget
        The guarantee, as for :func:`dp_pca`; all variables share it. A delta is
        needed, well below 1/n: it bounds the probability that a level is shown
        which one row alone has.
    mechanism : {"auto", "partition"} or instance
        Truncated geometric noise, which finds most.
    adjacency, person, rows, subset, csv, ledger
        As for :func:`dp_pca`. A ledger takes such a release before any with
        Gaussian noise, as deltas of such releases add up: leave it the rest
        of its delta by a smaller one here.

    Returns
    -------
    LevelsResult
        Its ``codebook`` is what was declared with the levels that were found, and is public.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    A level is a text of at most 100 printable characters or a whole number
    below 2**53; text that spells a number is that number, so that ``1``,
    ``"1"`` and ``"01"`` are one. Rows with any other cell, longer or blank
    text among them, count as incomplete for that variable, silently. Levels
    come sorted, whole numbers where all of them are.

    All levels are counted in memory, some 250 bytes each: where all values
    differ, as names do, 2.5 GB for ten million rows. Such columns have no
    levels to be found.

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
    held = gathered(data, sites, protocol, PROTOCOLS, csv)
    book = declared_besides(codebook, data, sites)
    words: dict[str, Any] = {"person": person, "rows": rows, "subset": subset}
    question = asked("levels", formula, book, eps, delta, budget, adjacency, **words)
    return cross(levels_way(question), held, mechanism, ledger)


def levels_way(question: Question) -> Way[LevelsResult]:
    """Return the way of the verb's question."""
    book = checked_codebook(question.codebook)
    text, names = named(question.formula, book)
    tables = tuple(TableCall((), (), measured=name) for name in names)

    def made(release: LevelsRelease, ledger: str, reason: str) -> LevelsResult:
        call = DescribedCall(text, Codebook(), tables, ledger, reason)
        return LevelsResult(call, release, book)

    return Way(
        question,
        unbound_levels(text, names),
        LevelFacts(len(names), question.adjacency),
        lambda mechanism, _: choose(mechanism, LEVELS, lambda: ("partition", "")),
        made,
    )
