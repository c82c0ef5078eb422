"""What verbs on moments of scaled columns share: their specification, and the call of a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from dpmodels.arguments import boolean
from dpmodels.design import PrivateDesign, row_coder, unbound_design
from dpmodels.design.private import coded_design
from dpmodels.errors import ArgumentError, quoted
from dpmodels.formula import Design
from dpmodels.mechanisms import COVARIANCE, SUBSPACE, Facts, Gauss, choose_strategy
from dpmodels.mechanisms.choose import Table, auto_moments
from dpmodels.mechanisms.protocol import AnyStrategy
from dpmodels.mechanisms.user_supplied import UserSupplied
from dpmodels.models.predicted_laws import components, covariances
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.denoise import RULES
from dpmodels.request import Request
from dpmodels.results import MomentsCall
from dpmodels.results.base import checked_ncomp
from dpmodels.results.call import accept
from dpmodels.sites import together
from dpmodels.typing import Coder, Option

Result = TypeVar("Result")
# Mechanisms for results that need Gaussian noise of a known distribution.
GAUSSIAN_MOMENTS: Table = {"gauss": COVARIANCE["gauss"]}
MANY_PASSES = frozenset(
    name for name, kind in COVARIANCE.items() if getattr(kind, "passes", "one") == "many"
)


def scaled_spec(
    request: Request,
    table: Table,
    result: Callable[[MomentsCall, Any, Coder], Result],
    *,
    automatic: frozenset[str] | None = None,
    lawful: bool = False,
    coded: Design | None = None,
    check: Callable[[Any], None] = accept,
) -> VerbSpec[Result]:
    """Build the specification of a verb on moments; `coded` are columns other than a formula's."""
    options, relation = request.options, request.adjacency
    center, scale = options.get("center", True), options.get("scale", "range")
    denoise, row_norm = checked_rule(options.get("denoise")), options["row_norm"]
    placed = {"scale": scale, "center": center, "row_norm": row_norm}
    if coded is None:
        private_design = unbound_design(request.formula, request.codebook, **placed)
    else:
        private_design = coded_design(coded, **placed)
    columns = len(private_design.public.names)
    n_components = checked_ncomp(options.get("ncomp"), columns)
    facts = Facts(columns, relation, center, n_components, private_design.scaling.unit)
    candidates = frozenset(table) if automatic is None else automatic
    strategy_options = {"denoise": denoise, "eigenvals": options.get("eigenvals")}
    strategy_options["inference"] = boolean("inference", options.get("inference", False))
    strategy_options["fourth"] = strategy_options["inference"] and table is GAUSSIAN_MOMENTS

    def chosen(mechanism: object, private: Sequence[PrivateDesign]) -> tuple[AnyStrategy, str]:
        counts = (source.nrows for source in private)
        rows = together(counts, relation.places) if relation.n_public else None
        read_once = not all(source.rereadable for source in private)
        available = candidates - MANY_PASSES if read_once else candidates
        automatic = partial(auto_moments, facts, request.private, rows, available)
        choice = choose_strategy(mechanism, table, automatic, strategy_options)
        if table is GAUSSIAN_MOMENTS:
            require_gaussian(choice.strategy, request.verb)
        if scale == "sd" and type(choice.strategy) in SUBSPACE.values():
            raise ArgumentError(
                'scale="sd" needs private standard deviations, which '
                f'{choice.strategy.info.name} does not release; write scale="range", or a '
                'mechanism that releases moments, such as "gauss"'
            )
        return choice

    def with_coder(call: MomentsCall, release: object) -> Result:
        return result(call, release, row_coder(private_design.public))

    settings = {"center": center, "scale": scale, "denoise": denoise, "ncomp": n_components}
    return VerbSpec(
        request,
        moments_call(private_design, settings),
        with_coder,
        private_design,
        facts,
        chosen,
        lawful=lawful,
        law=partial(components if request.verb == "pca" else covariances, private_design),
        check=check,
    )


def require_gaussian(strategy: object, verb: str) -> None:
    """Refuse mechanisms that do not support intervals."""
    is_registered_gaussian = (
        isinstance(strategy, UserSupplied) and strategy.mechanism.law == "gaussian"
    )
    if not is_registered_gaussian and not isinstance(strategy, Gauss):
        raise ArgumentError(
            f"mechanism= is of type {type(strategy).__name__}; dp_{verb} needs moments with "
            'Gaussian noise of a known distribution: write "gauss", or such a registered mechanism'
        )


def checked_rule(denoise: object) -> str | None:
    """Return the rule for removing noise from eigenvalues; ArgumentError lists the rules."""
    if denoise is None or (isinstance(denoise, str) and denoise in RULES):
        return denoise
    rules = ", ".join(f'"{rule}"' for rule in RULES)
    raise ArgumentError(f"denoise={quoted(denoise)}: expected {rules} or None")


def moments_call(private_design: PrivateDesign, settings: Mapping[str, Option]) -> MomentsCall:
    """Return the public facts of a design; `settings` are the other fields."""
    public, scaling = private_design.public, private_design.scaling
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
        **settings,
    )
