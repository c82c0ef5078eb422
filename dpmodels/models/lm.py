"""``dp_lm``: private linear regression by formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign, row_coder
from dpmodels.design.regression import private_regression
from dpmodels.errors import ArgumentError
from dpmodels.formula.response import TwoSided, two_sided
from dpmodels.mechanisms import CovarianceMechanism, Facts, Gauss, Laplace, choose
from dpmodels.mechanisms.regression import REGRESSION, AdaSSP, Moments
from dpmodels.models.asked import about
from dpmodels.privacy import (
    Adjacency,
    AdjacencyName,
    Guarantee,
    Ledger,
    charge,
    check_ledger,
    resolve_budget,
)
from dpmodels.privacy import adjacency as neighbours
from dpmodels.results import MomentsCall
from dpmodels.results.lm import LMResult
from dpmodels.results.lm_fit import LinearModel
from dpmodels.sites import PROTOCOLS, Parties, SiteProtocol, gathered, parties

LAWFUL = (Moments, AdaSSP, Gauss, Laplace)
ALWAYS = (
    "one release of exact moments has the smallest noise of known law, and every interval is made "
    "from it."
)


def dp_lm(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Codebook,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    weights: str | None = None,
    row_norm: float | None = None,
    mechanism: str | CovarianceMechanism = "auto",
    adjacency: AdjacencyName | Adjacency = "replace",
    ledger: Ledger | None = None,
) -> LMResult:
    """Fit a private linear regression by least squares.

    Parameters
    ----------
    formula : str
        Such as ``"income ~ age + C(sex)"``; ``y ~ .`` for all other variables
        of the codebook.
    data : frame, mapping, path or iterable of frames
        As for :func:`dp_pca`. Never kept.
    sites, protocol : mapping and str, optional
        Instead of ``data``: rows of each site by its name, and who sees what of
        them, see :func:`dp_pca`.
    codebook : Codebook
        Public bounds and levels of the variables, response and weights among
        them. Values outside their bounds are clipped to them.
    eps, delta : float
        The guarantee; with ``delta`` in (0, 1) the noise is Gaussian, with
        ``delta=0`` it is Laplace.
    budget : Guarantee, optional
        Instead of ``eps``: ``dp.ZCDP(rho)``, ``dp.ApproxDP(eps, delta)``.
    weights : str, optional
        A variable with public bounds from 0 up, to which the precision of a
        row's response is proportional.
    row_norm : float, optional
        The longest scaled row of the terms to keep whole, smaller than the
        codebook's worst case: less noise, and bias where rows are longer.
    mechanism : str or instance
        ``"auto"``, ``"moments"`` (noisy moments of terms and response) or
        ``"adassp"`` (the same, and a ridge by a private eigenvalue).
    adjacency : {"replace", "add-remove"}
        Who is a neighbour.
    ledger : Ledger, optional
        Charged before a row is read; refuses what it cannot afford.

    Returns
    -------
    LMResult
        ``params, bse, conf_int(), noise_int(), summary(), predict(newdata)``
        and more, by statsmodels' names.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    The response is scaled to be longer than a term, since errors of X'y count
    once and those of X'X times the coefficients: ``√(√(1 + 2p) - 1)`` for p
    terms, which minimises the noise where coefficients in scaled units have a
    norm of about ½.

    Intervals of a pure guarantee take sums of Laplace noise as if they were
    normal of the same variance: those of 95 % cover 93.8 % at the least.

    References
    ----------
    .. [1] Wang, Y.-X. (2018). "Revisiting differentially private linear
       regression: optimal and adaptive prediction and estimation in unbounded
       domain." UAI.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.models.lm import dp_lm
    >>> cb = dp.codebook(wage=(0, 100), educ=(0, 20), sex=["F", "M"])
    >>> rows = {"wage": [31, 64] * 500, "educ": [9, 16] * 500, "sex": ["F", "M", "M", "F"] * 250}
    >>> fit = dp_lm("wage ~ educ + sex", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.params.index.tolist(), fit.conf_int().shape
    (['Intercept', 'sex[T.M]', 'educ'], (3, 2))
    """
    guarantee, relation = resolve_budget(eps, delta, budget), neighbours(adjacency)
    check_ledger(ledger)
    rows = gathered(data, sites, protocol, PROTOCOLS)
    asked = _bind(formula, rows, codebook, weights, row_norm)
    facts = Facts(len(asked.design.public.names), relation, centred=True)
    name, reason = asked.held.mechanism(mechanism, "moments", guarantee)
    strategy, always = choose(name, REGRESSION, lambda: ("moments", ALWAYS))
    reason = always or reason
    if not isinstance(strategy, LAWFUL):
        raise ArgumentError(
            f"mechanism= is of type {type(strategy).__name__}; least squares needs moments whose "
            'noise has a known law: "moments", "adassp", or an instance of these'
        )
    plan = strategy.plan(facts, guarantee)
    asked.held.check(strategy, plan)
    charged = charge(
        ledger,
        plan.events,
        adjacency=relation,
        about=about("dp_lm", formula, strategy, asked.design.public.codebook),
        claims=asked.held.claims,
    )
    release = asked.held.release(strategy, asked.designs, plan, charged)
    call = _call(asked.design, charged.told, reason)
    terms, model = asked.both.terms, LinearModel(asked.both.intercept, weights)
    return LMResult(call, release, model, row_coder(terms) if terms.names else None)


class _Bound(NamedTuple):
    both: TwoSided
    held: Parties
    designs: tuple[PrivateDesign, ...]

    @property
    def design(self) -> PrivateDesign:
        """Public facts of all."""
        return self.designs[0]


def _bind(
    formula: str, data: object, codebook: Codebook, weights: str | None, row_norm: float | None
) -> _Bound:
    both = two_sided(formula, codebook, apart=() if weights is None else (str(weights),))
    terms = len(both.terms.names)
    emphasis = math.sqrt(max(math.sqrt(1 + 2 * terms) - 1, 1.0))
    held = parties(data)
    designs = held.bind(
        lambda own: private_regression(
            formula, own, codebook, weights=weights, row_norm=row_norm, emphasis=emphasis
        )
    )
    return _Bound(both, held, designs)


def _call(design: PrivateDesign, ledger: str, reason: str) -> MomentsCall:
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
        unit_rows=False,
        center=True,
        scale="range",
        denoise=None,
        ncomp=len(public.names),
        ledger=ledger,
        reason=reason,
    )
