"""Bounds and levels that a session releases before its other calls."""

from __future__ import annotations

from dpmodels.dictionaries.private_codebook import as_private
from dpmodels.errors import CodebookError
from dpmodels.models.drafting import Released, draft_codebook
from dpmodels.privacy import ApproxDP, Guarantee, Ledger, resolve_budget
from dpmodels.request import Request
from dpmodels.sessions.call import Terms
from dpmodels.sessions.shares import whole_of

# Of the session's delta, where the call sets none: a choice.
DELTA_SHARE = 0.1


def drafted_in_session(
    formula: str,
    codebook: object,
    terms: Terms,
    ledger: Ledger,
    eps: float | None,
    delta: float | None,
    budget: Guarantee | None,
) -> Released:
    """Release what the variables of a formula lack, charged to the session's ledger.

    CodebookError, ArgumentError, BudgetError or LedgerError before the first charge, and
    BudgetError after it where the search finds nothing.
    """
    private, total = as_private(codebook), whole_of(ledger)
    if private is None:
        raise CodebookError(
            f'codebook= is of type {type(codebook).__name__}: expected "private" or '
            'dp.private_codebook(age="numeric", ...)'
        )
    if delta is None:
        has_delta = budget is None and isinstance(total, ApproxDP)
        delta = total.delta * DELTA_SHARE if has_delta and isinstance(total, ApproxDP) else 0.0
    guarantee, book = resolve_budget(eps, delta, budget), terms.codebook | private.declared
    request = Request("bounds", formula, book, guarantee, terms.adjacency, {}, terms.subset)
    return draft_codebook(request, private, terms.parties, ledger)
