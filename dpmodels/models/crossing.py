"""The way of every release of moments: design, choice, plan, charge, measure, release."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign, private_design
from dpmodels.errors import ArgumentError, said
from dpmodels.mechanisms import SUBSPACE, Facts, choose
from dpmodels.mechanisms.auto import auto_moments
from dpmodels.mechanisms.choose import Table
from dpmodels.models.asked import about
from dpmodels.postprocess.denoise import RULES
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, charge, check_ledger
from dpmodels.privacy import adjacency as neighbours
from dpmodels.released import Release
from dpmodels.results import MomentsCall
from dpmodels.results.arguments import checked_ncomp
from dpmodels.sites import parties, together


class Asked(NamedTuple):
    """The words that verbs on moments share, as given."""

    formula: str
    data: object
    codebook: Codebook
    guarantee: Guarantee
    center: bool
    scale: str | None
    row_norm: float | str | None
    mechanism: object
    denoise: str | None
    adjacency: AdjacencyName | Adjacency
    ledger: Ledger | None


class Crossed(NamedTuple):
    """A release with the public facts it came from."""

    design: PrivateDesign
    call: MomentsCall
    release: Release


def cross(
    verb: str,
    asked: Asked,
    table: Table,
    *,
    automatic: frozenset[str] | None = None,
    components: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Crossed:
    """Take rows across: everything is checked and charged before one is read.

    Parameters
    ----------
    verb : str
        Its name, for the ledger.
    asked : Asked
        What the user wrote.
    table : mapping
        The strategies the verb takes.
    automatic : frozenset of str, optional
        Names of those that ``mechanism="auto"`` may stand for; all by default.
    components : int, optional
        Components wanted; all by default.
    options : mapping, optional
        Further words, for strategies that have such a field.
    """
    relation = neighbours(asked.adjacency)
    _check(asked)
    held = parties(asked.data)
    designs = held.bind(
        lambda own: private_design(
            asked.formula,
            own,
            asked.codebook,
            scale=asked.scale,
            center=asked.center,
            row_norm=asked.row_norm,
        )
    )
    design = designs[0]
    columns = len(design.public.names)
    kept = checked_ncomp(components, columns)
    length = 1.0 if design.scaling.unit else 0.5
    facts = Facts(columns, relation, asked.center, kept, length)
    words = {"denoise": asked.denoise, **(options or {})}
    rows = together(own.nrows for own in designs) if relation.n_public else None
    known = frozenset(table) if automatic is None else automatic
    mechanism, why = held.mechanism(asked.mechanism, "gauss", asked.guarantee)
    strategy, reason = choose(
        mechanism, table, partial(auto_moments, facts, asked.guarantee, rows, known), words
    )
    if asked.scale == "sd" and type(strategy) in SUBSPACE.values():
        raise ArgumentError(
            f'scale="sd" needs private standard deviations, which {strategy.card.name} does not '
            'release; write scale="range", or a mechanism that releases moments, such as "gauss"'
        )
    if getattr(strategy, "passes", "one") == "many":
        for own in designs:
            own.require_passes()
    plan = strategy.plan(facts, asked.guarantee)
    held.check(strategy, plan)
    charged = charge(
        asked.ledger,
        plan.events,
        adjacency=relation,
        about=about(verb, asked.formula, strategy, design.public.codebook),
        claims=held.claims,
    )
    release = held.release(strategy, designs, plan, charged)
    return Crossed(design, _call(asked, design, kept, charged.told, why or reason), release)


def _call(
    asked: Asked, design: PrivateDesign, components: int, ledger: str, reason: str
) -> MomentsCall:
    public, scaling = design.public, design.scaling
    return MomentsCall(
        formula=public.formula,
        codebook=public.codebook,
        names=public.names,
        lower=public.lower,
        upper=public.upper,
        origin=scaling.centre,
        divisor=scaling.scale,
        row_norm=scaling.row_norm,
        worst_case=scaling.worst_case,
        unit_rows=scaling.unit,
        center=asked.center,
        scale=asked.scale,
        denoise=asked.denoise,
        ncomp=components,
        ledger=ledger,
        reason=reason,
    )


def _check(asked: Asked) -> None:
    check_ledger(asked.ledger)
    if asked.denoise is not None and said(asked.denoise).strip("'") not in RULES:
        known = ", ".join(f'"{rule}"' for rule in RULES)
        raise ArgumentError(f"denoise={said(asked.denoise)}: expected {known} or None")
