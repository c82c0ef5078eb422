"""Bounds and levels that a session releases before its other calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpmodels.codebook import Codebook
from dpmodels.dictionaries.private_codebook import as_private
from dpmodels.errors import CodebookError
from dpmodels.models.drafting import Stages, draft_calls, one_table, released, unknown_variables
from dpmodels.privacy import ApproxDP, Guarantee, Ledger, resolve_budget
from dpmodels.request import Request
from dpmodels.sessions.call import Terms
from dpmodels.sessions.shares import whole_of
from dpmodels.variables import Boolean

# Of the session's delta, where the call sets none: a choice.
DELTA_SHARE = 0.1


def drafted_in_session(
    formula: str,
    codebook: object,
    terms: Terms,
    ledger: Ledger,
    amounts: tuple[float | None, float | None, Guarantee | None],
) -> tuple[Codebook, list[Any]]:
    """Release what the variables of a formula lack, by eps, delta or a budget."""
    private, budget_of_all, (eps, delta, budget) = as_private(codebook), whole_of(ledger), amounts
    if private is None:
        raise CodebookError(
            f'codebook= is of type {type(codebook).__name__}: expected "private" or '
            'dp.private_codebook(age="numeric", ...)'
        )
    if delta is None:
        spends = budget is None and isinstance(budget_of_all, ApproxDP)
        delta = getattr(budget_of_all, "delta", 0.0) * DELTA_SHARE * spends
    total, book = resolve_budget(eps, delta, budget), terms.codebook | private.declared
    request = Request("bounds", formula, book, total, terms.adjacency, {}, terms.subset)
    holders = one_table(terms.parties)
    unknown = unknown_variables(request, private, holders)
    declared = book | dict.fromkeys(unknown.logical, Boolean())
    part = len(unknown.bounds) / max(len(unknown.bounds) + len(unknown.levels), 1)
    parts = [total, total]
    if 0 < part < 1 and isinstance(total, ApproxDP):
        parts = [ApproxDP(total.eps * of, total.delta / 2) for of in (part, 1 - part)]
    stages = Stages(parts[0] if part > 0 else None, parts[1] if part < 1 else None, total)
    calls = draft_calls(replace(request, codebook=declared), private, unknown, stages)
    return released(calls, declared, private, holders, ledger)
