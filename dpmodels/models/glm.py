"""``dp_glm``: private generalised linear models, and multinomial logits, by formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Unpack

import numpy as np

from dpmodels.arguments import real
from dpmodels.design.private import PrivateDesign
from dpmodels.errors import ArgumentError, FormulaError, did_you_mean, quoted, shorten
from dpmodels.formula.response import TwoSided
from dpmodels.formula.tally import MOST_CELLS, Crossed, crossed
from dpmodels.formula.values import Category
from dpmodels.formula.values import Real as RealValue
from dpmodels.mechanisms import RegressionMechanism
from dpmodels.mechanisms.choose import Choice, two_digits
from dpmodels.mechanisms.choose_counts import auto_counts
from dpmodels.mechanisms.counts import COUNTS
from dpmodels.mechanisms.protocol import AnyStrategy, RegressionFacts
from dpmodels.mechanisms.regression import COEFFICIENTS, RATES
from dpmodels.mechanisms.regression.tabulated import CellCounts, cell_facts
from dpmodels.models.linear import (
    Linear,
    Model,
    Tune,
    coefficients_spec,
    levels,
    linear,
    requested_ridge,
)
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import PureDP
from dpmodels.released import CountsRelease
from dpmodels.request import Request
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.classifiers import MultinomialResult
from dpmodels.results.glm import GLMResult
from dpmodels.results.tabulated import CountedGLM, CountedMultinomial, OrdinalResult
from dpmodels.statistics.losses import Logistic, Multinomial, Poisson
from dpmodels.typing import Coder
from dpmodels.verbs import spec_of

# Options that change what is fitted, which counts cannot.
_OTHERS: Final = ("ridge", "row_norm")


@dataclass(frozen=True)
class Tabulation:
    """The table of a request, or the text of the term that has no levels to count."""

    table: Crossed | str
    request: Request
    facts: RegressionFacts

    @property
    def sizes(self) -> dict[str, int]:
        """The number of counts; empty where there cannot be any."""
        is_changed = any(self.request.options.get(name) is not None for name in _OTHERS)
        if is_changed or isinstance(self.table, str) or self.table.cells > MOST_CELLS:
            return {}
        return {"part": self.table.cells + 1}

    def choice(self) -> Choice[CellCounts]:
        """Return the counts of less noise; refuse what has no table."""
        options = self.request.options
        if isinstance(self.table, str):
            term, is_ordinal = shorten(self.table), options["family"] == "ordinal"
            what = 'family="ordinal"' if is_ordinal else 'mechanism="counts"'
            raise FormulaError(
                f"{term!r} takes many values, and {what} counts combinations of levels: cut or "
                f"compare it, as in cut({term}, [...])"
                f"{'' if is_ordinal else ', or leave mechanism= out'}"
            )
        for name in _OTHERS:
            if options.get(name) is not None:
                raise ArgumentError(
                    f"{name}={quoted(options[name])} does not go with counts, which need no ridge "
                    f"and shorten no row: leave {name}= out"
                )
        tally = self.table.tally
        name, reason = auto_counts(cell_facts(tally, self.facts), self.request.private)
        return Choice(CellCounts(COUNTS[name](), tally), reason)

    def best(self, other: type[RegressionMechanism]) -> Choice[CellCounts] | None:
        """Return counts if their noise in the score is predicted to be less than another's.

        That of counts of equal odds, in all gradients of rows at most 1 long together, is that of
        one count times ``√(combinations (levels - 1))``, of two levels ``√(combinations / 2)``. The
        other mechanism has its own in each coordinate.
        """
        if not self.sizes or isinstance(self.table, str):
            return None
        (strategy, _), levels = self.choice(), len(self.table.response.levels)
        if isinstance(self.request.private, PureDP) and levels > 2:
            return Choice(strategy, "it needs no delta.")
        plan, rival = strategy.plan(self.facts, self.request.private), other()
        scales = rival.plan(self.facts, self.request.private).scales
        spread = self.table.cells / levels * (levels - 1 if levels > 2 else 0.5)
        noise = plan.noise_sd * math.sqrt(spread)
        rival_noise = scales.get("last", scales.get("sd")) * self.facts.columns**0.5
        reason = (
            f"with {self.table.cells:,} cells its noise in the score has an sd of "
            f"{two_digits(noise)}; that of {rival.info.name} would have {two_digits(rival_noise)}."
        )
        return Choice(strategy, reason) if noise <= rival_noise else None


def ordered_call(call: CoefficientsCall, equation: TwoSided) -> CoefficientsCall:
    """Return the public facts of an ordinal logit: slopes, then thresholds such as ``low|mid``.

    FormulaError if the levels of the response have no order, or the formula removes the constant.
    """
    factor = equation.response.blocks[0].factors[0]
    name = shorten(factor.code)
    if not (isinstance(factor, Category) and (factor.ordered or name.startswith("cut("))):
        raise FormulaError(
            f'the response {name!r} has no ordered levels, which family="ordinal" needs: declare '
            f'{name}=dp.Categorical(["low", "mid", "high"], ordered=True), or cut({name}, [...]) '
            "a number"
        )
    if not equation.intercept:
        raise FormulaError(
            'the formula removes the constant, and the thresholds of family="ordinal" are '
            "constants: leave out '- 1' or '0 +'"
        )
    thresholds = tuple(f"{low}|{high}" for low, high in pairwise(call.levels))
    names = (*equation.terms.names, *thresholds)
    return replace(call, names=names, response=factor.code, matrix=np.eye(len(names)))


AUTOMATIC = {
    "binomial": (
        "objective",
        "it adds noise to one sum of gradients, and its intervals have correct coverage.",
    ),
    "poisson": (
        "scores",
        "it releases a bound on residuals, then one noisy sum of them at a released rate.",
    ),
    "multinomial": (
        "gradients",
        "its sums of gradients are bounded for any number of levels, and it has intervals.",
    ),
    "ordinal": ("counts", "the model is fitted to released counts."),
}


Fit = GLMResult | MultinomialResult
# The results of releases of coefficients, and of counts of cells.
BY_SUMS: dict[str, type[Fit]] = {
    "binomial": GLMResult,
    "poisson": GLMResult,
    "multinomial": MultinomialResult,
    "ordinal": OrdinalResult,
}
BY_COUNTS: dict[str, type[Fit]] = BY_SUMS | {
    "binomial": CountedGLM,
    "multinomial": CountedMultinomial,
}
# A choice: parameters, with those of the reference, up to which rounding of squares is proved.
MOST_COEFFICIENTS = 1_000


@verb
def dp_glm(
    formula: str,
    data: object = None,
    *,
    family: str = "binomial",
    inference: bool = True,
    clip: float | None = None,
    ridge: float | Tune | None = None,
    scale: str | None = "range",
    row_norm: float | None = None,
    mechanism: str | RegressionMechanism = "auto",
    **shared: Unpack[Shared],
) -> GLMResult | Any:
    """Fit a private logistic, Poisson or multinomial regression.

    Parameters
    ----------
    formula : str
        For example ``"income ~ age + C(region)"``. With ``family="binomial"``
        the response is a category of two levels, a number declared ``(0, 1)``
        (rows of other values are incomplete), or a comparison such as
        ``wage > 20``; the probability of the second level is modelled. With
        ``family="multinomial"`` it is a category, the first level declared the
        reference; one of two levels is binomial. With ``family="ordinal"`` its levels
        are ordered, and all terms are categories, such as ``cut(age, [20, 40])``.
        With two levels and counts ``offset(z)`` is a part of the linear predictor
        with the coefficient 1, such as ``offset(log(years))``; its range follows from
        the codebook, ``predict`` reads it, and marginal means are at 0 of it.
    eps
        ``family="poisson"``, and ``"multinomial"`` with three levels or more and a
        number among the terms, need a delta above 0 or ``dp.ZCDP(rho)``.
    protocol
        Here ``"pooled"``, ``"secure_sum"`` or ``"local"``.
    data
        Not an iterable of frames: the rows are read several times.
    family : {"binomial", "poisson", "multinomial", "ordinal"}
        Logit, log, multinomial or cumulative logit link, the last with proportional odds.
    inference : bool
        Whether a part of the budget buys standard errors and intervals: 35 %
        with ``mechanism="objective"``, 17 % with ``"scores"``, 63 % with
        ``"gradients"``, half of which goes to the coefficients too.
    clip : float, optional
        With ``family="poisson"``: bound on a residual, in units of the response. By default
        ``mechanism="scores"`` buys one that hardly matters, by the sizes of residuals, and
        ``"gradients"`` takes ``2 sqrt(upper)``, for a response declared up to `upper`. Clipping
        biases the coefficients, which no interval covers.
    ridge : float or dp.tune(...), optional
        With ``mechanism="objective"`` or ``"output"``: weight of half the squared coefficients, in
        units of the ball, beside the sum of the losses. A public number, by default one that suits
        the noise, or several of which held-out rows choose one for prediction, see :func:`tune`.
        Coefficients with standard errors are corrected for the ridge's bias.
    scale : {"range", None}
        Divide columns by their public half-range for the fit, or not; the coefficients are those of
        the coded columns.
    row_norm : float, optional
        The longest scaled row to keep whole: less noise, and bias where rows
        are longer.
    mechanism : str or instance
        ``"auto"``, ``"counts"``, or a name in ``dpmodels.mechanisms.regression.COEFFICIENTS``.

    Returns
    -------
    GLMResult or MultinomialResult
        The latter of a response with three levels or more; ``OrdinalResult`` of ordered ones.

    Notes
    -----
    Perfect separation, constant columns and a response of one level raise no error: a public ridge
    keeps the minimum finite.

    Under a guarantee with a delta above 0, or ``dp.ZCDP``, a part of the budget estimates where
    most rows lie. The fit uses the rows within a released radius of their mean; with two levels and
    counts it is along released axes, and bounds may be a thousand times too wide. An estimated 2 %
    at most are left out, or 10 % where noise would else hide the curvature, and the table says how
    many. Coefficients and intervals describe the rows within, and all rows where the model holds.

    A multinomial logit has one release for all levels: a row adds the one vector ``(p - e_y) ⊗ z``
    to each sum, at most √2 times as long as in a logistic regression, and noise falls on contrasts
    of levels alike, whichever is the reference. Fits of one level after the other against the
    reference divide the budget instead: at three levels, 20,000 rows and eps = 1 they had 1.2 to
    2.2 times the error. Levels with few rows, or none, have no standard errors; where numbers are
    among the terms they may cost those of all levels: declare one level for rare ones.

    *Where all terms are categories*, or whole numbers of at most 20 values, ``"counts"`` releases
    the table of all combinations of levels, and coefficients maximise the likelihood of its noisy
    counts. ``"auto"`` takes it up to 10,000 cells, where public facts predict less noise in the
    score: at 12 cells, 20,000 rows and eps = 1 it had a sixth of the error of ``"gradients"``, at
    120 a thirteenth. Standard errors cost nothing; levels whose counts are hidden by noise are not
    identified, and leave the others.

    With ``family="poisson"`` the response may be declared far too widely: its size, where the rows
    lie, and a bound on residuals are bought, and noise falls on one sum of residuals about a rate
    that is known by then. Standard errors are robust, quasi-Poisson where the budget is small: they
    hold for counts that vary more than Poisson's, such as negative-binomial ones.

    With ``person`` the squared gradients that standard errors are made from are
    those of persons, sums over their rows: errors are clustered by person.

    Under a survey design, ``design=dp.design(weights="w", ...)``, rows count by their sampling
    weights, and errors are those of R's ``svyglm``, within strata where noise does not hide them.
    As in ``dp_lm`` half of the budget takes one step from capped weights to all weights, by the
    scores of units, see ``fit.design``. Intervals of a logit assume that the longest scores, which
    noise hides, go on from the shorter ones: where a few heavy units are far out in a group of
    their own, intervals of 95 % have covered .80. A multinomial logit, and ``inference=False``,
    have no such step: they describe capped weights and ignore strata. ``family="ordinal"``,
    ``mechanism="counts"`` and ``ridge=dp.tune(...)`` take no design.

    With ``mechanism="objective"`` 10 % of the budget buys the curvature at the ridged minimum and
    25 % the mean curvature along Newton's step back from the ridge, with squared gradients at its
    end; where a term is so strong that this step is long, a sum of gradients, the curvature and
    squares near the estimate. Terms whose curvature noise hides there, and levels without cases,
    are not identified; the others are. ``params`` are corrected for the ridge and have intervals,
    ``params_released`` are the minimum as released. If only predictions matter, ``inference=False``
    has less noise; and where the release is alone on its ledger, ``mechanism=Objective(pure=True,
    share=0.2)`` of :mod:`dpmodels.mechanisms.regression` has nearly as little, with intervals for
    many rows.

    Standard errors are offered coefficient by coefficient, see
    :class:`dpmodels.results.glm.GLMResult`. Rare outcomes, small budgets, and a number whose bounds
    are so wide that noise swamps it, may leave none: then the table gives a lower bound of the
    noise.

    Several sites under ``"pooled"``: the sums that ``"gradients"`` adds noise to are exact, bit for
    bit those of one table. Those that ``"objective"`` and ``"output"`` minimise are added in
    floating point, of about 100 bits, and rounded differently than in one table; the two mechanisms
    are idealised. Their noise covers that rounding for tables of at most 2⁴⁰ rows, in up to some
    hundred columns, and their guarantee covers such tables: a longer one raises a ``FrameError``
    after the charge.

    References
    ----------
    .. [1] Chaudhuri, K., Monteleoni, C. and Sarwate, A. D. (2011).
       "Differentially private empirical risk minimization." JMLR 12.
    .. [2] Kifer, D., Smith, A. and Thakurta, A. (2012). "Private convex
       empirical risk minimization and high-dimensional regression." COLT.

    Examples
    --------
    >>> import numpy as np
    >>> import dpmodels as dp
    >>> from dpmodels.models.glm import dp_glm
    >>> cb = dp.codebook(age=(0, 100), smoker=["no", "yes"])
    >>> rows = {"age": [20, 30, 60, 70] * 500, "smoker": ["no", "yes", "no", "yes"] * 500}
    >>> fit = dp_glm("smoker ~ age", rows, codebook=cb, eps=1.0)
    >>> list(fit.params.index), fit.predict({"age": [40]}).shape
    (['Intercept', 'age'], (1,))
    >>> cb |= {"party": dp.Categorical(["a", "b", "c"], ordered=True)}
    >>> rows |= {"party": ["a", "b"] * 1000}
    >>> words = {"codebook": cb, "eps": 1.0, "delta": 1e-6, "family": "multinomial"}
    >>> fit = dp_glm("party ~ smoker", rows, **words)
    >>> fit.params.columns.tolist(), fit.predict({"smoker": ["no"]}).shape
    (['b', 'c'], (1, 3))
    >>> dp_glm("party ~ smoker", rows, **words | {"family": "ordinal"}).thresholds.index.tolist()
    ['a|b', 'b|c']
    """
    return run_verb("glm", glm_spec, **locals() | {"ridge": requested_ridge(ridge)})


@spec_of("glm", joint="gradients", designs=True)
def glm_spec(request: Request) -> VerbSpec[Fit]:
    """Build the specification of a dp_glm call."""
    has_design = request.codebook.design is not None
    if has_design:
        _check_design(request)
    spec, terms = glm_by_sums(request)
    return spec if has_design else glm_by_counts(request, spec, terms)


def glm_by_sums(request: Request) -> tuple[VerbSpec[Fit], Linear]:
    """Build the specification of a call without counts of cells, and its terms."""
    family, clip = request.options["family"], request.options["clip"]
    if not isinstance(family, str) or family not in AUTOMATIC:
        families = ", ".join(f'"{name}"' for name in AUTOMATIC)
        raise ArgumentError(
            f"family={quoted(family)}{did_you_mean(family, AUTOMATIC)}: expected {families}; the "
            "links are logit and log, and least squares are dp_lm"
        )
    terms = linear(request)
    model = _poisson(terms.equation, clip) if family == "poisson" else _logit(terms, clip, family)

    def result(call: CoefficientsCall, release: Any, coder: Coder | None) -> Fit:
        kinds = BY_COUNTS if isinstance(release, CountsRelease) else BY_SUMS
        return kinds[model.family](call, release, coder)

    counts = {} if request.codebook.design is not None else {"counts": CellCounts}
    further: Any = RATES if model.family == "poisson" else counts
    table, automatic = COEFFICIENTS | further, AUTOMATIC[model.family]
    return coefficients_spec(request, terms, model, table, automatic, result), terms


def _check_design(request: Request) -> None:
    """Refuse what has no weighted rows, before a row is read."""
    if request.options["family"] == "ordinal":
        raise ArgumentError(
            'family="ordinal" is computed from counts, whose errors are not those of a survey '
            "design: compare the response, as in 'health > 2 ~ ...', or write design=False"
        )
    if isinstance(request.options.get("ridge"), tuple):
        raise ArgumentError(
            "ridge=dp.tune(...) divides the rows at random, and sampling units are not to be "
            "divided: give one ridge, or write design=False"
        )


def glm_by_counts(request: Request, spec: VerbSpec[Fit], terms: Linear) -> VerbSpec[Fit]:
    """Let a specification take counts of cells where its terms are categories."""
    call = spec.call
    assert isinstance(call, CoefficientsCall)
    family = call.family
    if family == "poisson" or terms.equation.known is not None:
        return spec
    tabulation = Tabulation(crossed(terms.equation), request, spec.facts)
    if family == "ordinal":
        call = ordered_call(call, terms.equation)

    def choose(mechanism: object, private: Sequence[PrivateDesign]) -> tuple[AnyStrategy, str]:
        name = mechanism if isinstance(mechanism, str) else ""
        if name == "counts":
            return Choice(tabulation.choice().strategy, "")
        if family != "ordinal":
            other = COEFFICIENTS[AUTOMATIC[family][0]]
            counted = tabulation.best(other) if name == "auto" else None
            return spec.choose(mechanism, private) if counted is None else counted
        if name == "auto":
            return tabulation.choice()
        raise ArgumentError(
            f'mechanism={quoted(mechanism)}: family="ordinal" is computed from counts of '
            'combinations of levels; write mechanism="counts" or leave it out'
        )

    return replace(spec, call=call, choose=choose, sizes=tabulation.sizes)


def _logit(terms: Linear, clip: float | None, family: str) -> Model:
    if clip is not None:
        raise ArgumentError(
            f'clip={quoted(clip)} goes with family="poisson"; logistic gradients are bounded'
        )
    if terms.predictors.responses == 1 and family != "ordinal":
        return Model("binomial", Logistic(), levels(terms.equation, f'family="{family}"'))
    loss = Multinomial(terms.predictors.responses + 1)
    size = terms.predictors.columns * loss.levels
    if size > MOST_COEFFICIENTS:
        raise FormulaError(
            f"{loss.levels} levels times {terms.predictors.columns} coefficients are {size:,}, and "
            f'family="{family}" allows {MOST_COEFFICIENTS:,}: name fewer terms, or compare '
            "levels, as in 'party == \"a\" ~ ...'"
        )
    return Model(family, loss, levels(terms.equation, f'family="{family}"'))


def _poisson(equation: TwoSided, clip: float | None) -> Model:
    """Return clipped residuals; check that the response is a non-negative number."""
    response = equation.response
    name, lower, upper = shorten(response.names[0]), response.lower[0], response.upper[0]
    counts = isinstance(response.blocks[0].factors[0], RealValue)
    if not counts or lower < 0 or upper <= 0:
        raise FormulaError(
            f"the response {name!r} runs from {lower:g} to {upper:g}; "
            'family="poisson" needs a number declared from 0 up'
        )
    suits = 2 * math.sqrt(upper)
    largest = suits if clip is None else real(clip)
    if not 1e-6 * upper <= largest <= 1e6 * upper:
        raise ArgumentError(
            f"clip={quoted(clip)}: expected a bound on residuals in units of the response, such as "
            f"{suits:.3g}"
        )
    return Model("poisson", Poisson(float(upper), float(largest)), ())
