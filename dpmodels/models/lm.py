"""``dp_lm``: private linear regression by formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack, cast

import numpy as np

from dpmodels.arguments import between, option
from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign, row_coder
from dpmodels.design.parts import SLOTS
from dpmodels.design.regression import joint_design
from dpmodels.errors import ArgumentError, FrameError, quoted
from dpmodels.formula import response
from dpmodels.formula.centring import Centres, centred_sides, product_centres
from dpmodels.formula.coding import of_blocks
from dpmodels.formula.tally import sampling_of
from dpmodels.mechanisms import CovarianceMechanism, Gauss, Laplace, Rounds, choose_strategy
from dpmodels.mechanisms.add_noise import event_law, noise_of
from dpmodels.mechanisms.lumped import Lumped, Recoded
from dpmodels.mechanisms.protocol import AnyStrategy, Facts, Plan, PlanOfStrategy, Registered
from dpmodels.mechanisms.regression import (
    REGRESSION,
    AdaSSP,
    Ellipsoid,
    Moments,
    Scores,
    ScoresPure,
)
from dpmodels.mechanisms.regression.column_location import column_ranges, powers_noise
from dpmodels.mechanisms.regression.scores import score_sd
from dpmodels.mechanisms.robust_covariance import NOBODY, RobustCovariance
from dpmodels.mechanisms.sampled_rows import Sampled, strata_used
from dpmodels.mechanisms.user_supplied import UserSupplied
from dpmodels.mechanisms.weighted_scores import WeightedScores
from dpmodels.models.assumed_rows import (
    DELTA,
    FILLED,
    NUMBERS,
    Prediction,
    assumed_variances,
    is_one_release,
    noise_edge,
)
from dpmodels.models.linear import sizes_of_scores
from dpmodels.models.moments import moments_call
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec, slots_of
from dpmodels.privacy import ApproxDP, Guarantee, Pufferfish, PureDP
from dpmodels.released import MomentsRelease
from dpmodels.request import Request
from dpmodels.results.call import MomentsCall
from dpmodels.results.lm import LMResult
from dpmodels.results.lm_fit import LinearModel, layout
from dpmodels.results.validate import require_law
from dpmodels.typing import Floats, Option
from dpmodels.verbs import spec_of

# A choice: the bias of coefficients by clipping rows where errors depend on the terms.
UNEVEN = 1.0
LARGEST_LUMP = 1e9
LAWFUL = (Moments, AdaSSP, Ellipsoid, Scores, ScoresPure, Gauss, Laplace, Rounds, UserSupplied)
# A choice by simulation, of rows over the noise of X'X in whitened terms, of so many columns: below
# the first intervals of slopes beside fixed effects cover too rarely or are lost.
LOST_GRAM, CLEAR_GRAM = 1.5, 3.0
# Of moments: strengths of X'X, and of a component, read off noisy moments.
LOST_SLOPES, CLEAR_SLOPES = 0.7, 2.0
# Choices by simulation, of the assumed variance of a number in half-ranges over the noise in it:
# below the first no slope has a standard error, from the second on most have.
LOST_LINE, CLEAR_LINE = 0.2, 1.25
# Choices: the likely radius of terms, in root mean squares, times that of residuals, in sds; and by
# how much the noise of one release exceeds that in X'y alone.
EXPECTED_LIMITS, NOISE_IN_GRAM = 2.5, 1.6
# Choices: from so many sampling errors on the noise in every slope is warned of without delta, and
# the budget suggested instead is one of as many.
MOSTLY_NOISE, ENOUGH = 3.0, 1.0
# A choice by simulation: the predicted ratio of Laplace noise, a geometric mean over slopes, from
# which on one release is taken. The rounds that find a line cost more of eps than of rho.
MOST_LAPLACE = 0.8
ONCE = "one release of moments: all intervals follow from the known noise distribution."
ABOUT_LINE = "its noise is proportional to the residuals about a line that is released first."
NEAR_LINE = "the step to all weights starts from a line that is released near the rows."


@verb
def dp_lm(
    formula: str,
    data: object = None,
    *,
    weights: str | None = None,
    row_norm: float | None = None,
    vcov: str | None = None,
    lump: int | None = None,
    mechanism: str | CovarianceMechanism | Registered = "auto",
    **shared: Unpack[Shared],
) -> LMResult:
    """Fit a private linear regression by least squares.

    Parameters
    ----------
    formula : str
        Such as ``"income ~ age + C(sex)"``; ``y ~ .`` for all other variables
        of the codebook. ``y ~ x + offset(z)`` is a fit of ``y - z``, so named,
        and predicts that. ``y ~ x | firm + year`` has fixed effects, as fixest:
        factors with declared levels, 300 at most, whose coefficients stand in
        ``fixed_effects()`` and not in the table.
    eps
        The noise is Gaussian with ``delta`` in (0, 1) and Laplace with ``delta=0``.
    codebook
        The response and the weights are declared too.
    weights : str, optional
        A variable with public bounds from 0 up, to which the precision of a
        row's response is proportional.
    row_norm : float, optional
        The longest scaled row of the terms to keep whole, smaller than the
        codebook's worst case: less noise, and bias where rows are longer.
    vcov : {"iid", "HC", "cluster"}, optional
        Standard errors and intervals for residuals of one variance, for residuals
        of different variances, or for dependent rows of a person: sandwich
        estimators, whose squared scores of rows, or of persons, take a twentieth of
        the budget. The rows are then read once more. By default ``"cluster"`` where
        ``person`` is given and the rows can be read again, else ``"iid"``.
    lump : int, optional
        Merge the levels of a factor with fewer rows than this into ``"Other"``, as
        ``fct_lump_min`` of R's forcats, by noisy numbers of rows that take a twentieth of the
        budget. It needs two such levels; the most frequent level stays.
    mechanism : str or instance
        ``"auto"``, ``"scores"`` (a line first, then noisy moments of terms and
        residuals about it), ``"scores_pure"`` (the same with Laplace noise, for
        ``delta=0``), ``"moments"`` (noisy moments of terms and response),
        ``"adassp"`` (the same, and a ridge by a private eigenvalue) or
        ``"ellipsoid"`` (moments of the rows in an ellipsoid found first).

    Returns
    -------
    LMResult
        ``params, bse, conf_int(), noise_int(), summary(), predict(newdata)``
        and more, by statsmodels' names.

    Notes
    -----
    The response is scaled to be longer than a term, since errors of X'y count
    once and those of X'X times the coefficients: ``√(√(1 + 2p) - 1)`` for p
    terms, which minimises the noise where coefficients in scaled units have a
    norm of about ½.

    Numbers inside products are centred at the middle of their range for the release, where the
    model has the lower-order terms; coefficients are those of the columns as written.

    ``vcov="HC"`` is statsmodels' HC1 where there is no noise, and ``"cluster"`` its
    ``cov_type="cluster"`` but for the factor G/(G - 1) of G persons. The
    contribution of one row, or person, to the squared scores is clipped at a part
    of the coefficients' variances that the table states; such scores are rare, and
    clipping makes standard errors too small by less than the noise does. The noise
    of the squares is allowed for.

    Under a survey design, ``design=dp.design(weights="w", ...)``, rows count by their sampling
    weights, and standard errors are those of R's ``svyglm``: scores summed by sampling unit, within
    strata where noise does not hide them, and the part of a finite population that was not sampled.
    A first fit has weights capped where a noisy histogram of them, for 3 % of the budget, predicts
    the least error; one step by the scores of units, for half or more of the budget, leads to all
    weights, see ``fit.design``. Scores are clipped to a length that is found, which intervals allow
    for; rows with long terms have less weight, and noise intervals are about the estimate with
    these. It takes neither ``vcov=`` nor ``lump=``.

    ``"auto"`` is ``"scores"``, or ``"scores_pure"`` without delta, for rows that can
    be read again, without ``row_norm``, unless ``"moments"`` is predicted to have
    less noise from bounds, levels and budget, as for columns declared to have two
    values; else, and under a survey design without delta, ``"moments"``. Where rows
    were clipped the table says how many. Under both long rows have less weight,
    beyond radii that grow with the rows and the budget, and ``noise_int()`` is for
    least squares with these weights: about coefficients with equal weights it covers
    too rarely where the relation bends, or where terms have heavy tails. Under
    ``"ellipsoid"`` coefficients and intervals describe the clipped rows.

    Intervals of a pure guarantee take sums of Laplace noise as if they were
    normal of the same variance: those of 95 % cover 93.8 % at the least.

    References
    ----------
    .. [1] Wang, Y.-X. (2018). "Revisiting differentially private linear
       regression: optimal and adaptive prediction and estimation in unbounded
       domain." UAI.
    .. [2] White, H. (1980). "A heteroskedasticity-consistent covariance matrix
       estimator and a direct test for heteroskedasticity." Econometrica 48.
    .. [3] Liang, K.-Y. and Zeger, S. L. (1986). "Longitudinal data analysis using
       generalized linear models." Biometrika 73.

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
    return run_verb("lm", lm_spec, **locals())


@spec_of("lm", gaussian="moments", site_defaults={"vcov": "iid"}, designs=True)
def lm_spec(request: Request) -> VerbSpec[LMResult]:
    """Build the specification of a dp_lm call."""
    spec, minimum = _spec_of(request, None), request.options.get("lump")
    if minimum is None:
        return spec
    _check_lump(minimum, request)
    written, _ = _sides(request, None)
    blocks = response.level_blocks(written)
    if not blocks:
        raise ArgumentError(
            f"lump={quoted(minimum)}: the terms name no factor of three levels or more by itself; "
            "leave out lump="
        )
    indicators = of_blocks("levels", written.joint.codebook, blocks)

    def chosen(mechanism: object, private: Sequence[PrivateDesign]) -> tuple[AnyStrategy, str]:
        strategy, reason = spec.choose(mechanism, private)
        base = cast("CovarianceMechanism", strategy)

        def recoded(merged: response.Merged) -> Recoded:
            of_merged = _spec_of(request, merged)
            # What was charged for, whatever would be chosen for the levels that are left.
            name = base.info.name if mechanism == "auto" else mechanism
            chosen_again = of_merged.choose(name, private)[0]
            mechanism_again = cast("CovarianceMechanism", chosen_again)
            public, scaling = of_merged.private.public, of_merged.private.scaling
            return Recoded(mechanism_again, of_merged.facts, public, scaling)

        return Lumped(base, indicators, float(minimum), recoded), reason

    def adapted(release: MomentsRelease) -> VerbSpec[LMResult]:
        return _spec_of(request, getattr(release, "lumped", None))

    return replace(spec, choose=chosen, adapted=adapted)


def _sides(request: Request, merged: response.Merged | None) -> tuple[response.TwoSided, Codebook]:
    weights, book = request.options["weights"], request.codebook
    excluded = () if weights is None else (str(weights),)
    written = response.two_sided(request.formula, book, excluded=excluded, absorb=True)
    if not merged:
        return written, book
    left = response.merged_book(book, written, merged)
    merged_sides = response.two_sided(request.formula, left, excluded=excluded, absorb=True)
    return response.lumped_sides(merged_sides, written, merged), left


def _spec_of(request: Request, merged: response.Merged | None) -> VerbSpec[LMResult]:
    weights = request.options["weights"]
    equation, book = _sides(request, merged)
    emphasis = math.sqrt(max(math.sqrt(1 + 2 * len(equation.terms.names)) - 1, 1.0))
    row_norm, vcov = request.options["row_norm"], request.options.get("vcov", "iid")
    _check(vcov, request)
    options = {"weights": weights, "row_norm": row_norm, "emphasis": emphasis}
    designed = partial(_designed, equation, book, options)
    centres = product_centres(equation) or None
    design, call = designed(centres)
    sampling = sampling_of(request.codebook)
    slots = request.adjacency if sampling is None else slots_of(request.adjacency)
    facts = Facts(len(call.names), slots, centred=True, centres=centres)

    def fitted(call: MomentsCall, release: MomentsRelease) -> LMResult:
        stated = getattr(release, "centres", None)
        if stated != centres:  # From a file of a version that centres other numbers
            _check_centres(stated or (), equation)
            stated_call = designed(stated)[1].held_in(release.ball)
            call = replace(stated_call, ledger=call.ledger, reason=call.reason)
        coder = row_coder(equation.terms) if equation.terms.names else None
        model = LinearModel(equation.intercept, weights, equation.fixed, sampling is not None)
        return LMResult(call, release, model, coder)

    def automatic(private: Sequence[PrivateDesign]) -> tuple[str, str]:
        is_plain = row_norm is None and bool(equation.terms.names)
        if not (is_plain and all(source.rereadable for source in private)):
            return "moments", ONCE
        return _automatic(design, facts, request.guarantee, is_sampled=sampling is not None)

    def chosen(mechanism: object, private: Sequence[PrivateDesign]) -> tuple[AnyStrategy, str]:
        strategy, reason = choose_strategy(mechanism, REGRESSION, lambda: automatic(private))
        _check_strategy(strategy, weights)
        kind = _kind(vcov, request, private)
        if kind == "iid":
            return strategy, reason
        if kind == "HC" and isinstance(strategy, Ellipsoid):
            strategy = replace(strategy, alike=max(strategy.alike, UNEVEN))
        terms = layout(call, weights)
        if sampling is None:
            return RobustCovariance(strategy, equation.intercept, terms, vcov=kind), reason
        levels = strata_used(sampling, is_domain=request.subset is not None)
        n_slots = private[0].nrows if request.adjacency.n_public else None
        n_units = None if n_slots is None else n_slots // SLOTS  # None where it is private
        scores = WeightedScores(strategy, equation.intercept, terms, levels, n_units)
        return Sampled(scores, sampling), reason

    return VerbSpec(
        request,
        call,
        fitted,
        design,
        facts,
        chosen,
        law=partial(_predicted, design, equation),
        sizes=sizes_of_scores(len(call.names) - 1 + equation.intercept, sampling),
        check=require_law,
        sampling=sampling,
    )


def _automatic(
    design: PrivateDesign, facts: Facts, guarantee: Guarantee | Pufferfish, *, is_sampled: bool
) -> tuple[str, str]:
    is_pure = isinstance(guarantee, PureDP)
    if isinstance(guarantee, Pufferfish) or (is_sampled and is_pure):
        return "moments", ONCE
    if is_sampled:
        return "scores", NEAR_LINE
    about = ScoresPure() if is_pure else Scores()
    once, lines = _predicted_errors(design, facts, guarantee, about)
    if is_pure:
        is_quieter = float(np.log(lines / once).mean()) < math.log(MOST_LAPLACE)
    else:
        is_quieter = float(np.median(lines)) < float(np.median(once))
    return (about.info.name, ABOUT_LINE) if is_quieter else ("moments", ONCE)


def _predicted(
    design: PrivateDesign, equation: response.TwoSided, plan: PlanOfStrategy, rows: int
) -> Prediction | None:
    """Predict the slopes, and beside fixed effects how many columns the budget carries."""
    prediction = _slopes_of_moments(design, plan, rows)
    if prediction is not None and not prediction.lost and isinstance(plan.guarantee, PureDP):
        prediction = _mostly_noise(design, plan, rows) or prediction
    if not equation.fixed or prediction is None or prediction.strength < prediction.lost_below:
        return prediction
    columns = len(design.public.names)
    if "final" in plan.scales:
        noise = event_law(plan.events[0]).sd * plan.scales["final"]
        strength = rows / (2 * noise * columns**1.5)
    else:
        variances = assumed_variances(design)[:-1]
        levels = np.delete(variances, equation.shown)
        strength = prediction.strength * float(levels.min() / variances.max())
    # The noise in X'X of so many columns grows as their root, and the rows of a level shrink.
    carried = int(columns * (strength / LOST_GRAM) ** (2 / 3))
    lacking = (
        f"slopes beside {' + '.join(equation.fixed)}, with {columns} columns in all, will have "
        "intervals that are infinite or too short, where up to about "
        f"{carried} columns have reliable ones"
    )
    return Prediction(strength, LOST_GRAM, CLEAR_GRAM, lacking, "levels are of one size")


def _slopes_of_moments(design: PrivateDesign, plan: object, rows: int) -> Prediction | None:
    """Predict least squares of the last column: the strength of X'X along its widest column."""
    variances, lacking = assumed_variances(design)[:-1], "no slope will have a standard error"
    if not len(variances) or not isinstance(plan, Plan):
        return None
    if "narrowed" in plan.scales:
        ranges = column_ranges(design.public.blocks, design.scaling)
        law = event_law(plan.events[0])
        noise = law.sd * powers_noise(plan, "powers", ranges, law).total * ranges.radius
        strength = rows / FILLED / noise
        return Prediction(strength, LOST_LINE, CLEAR_LINE, lacking, NUMBERS)
    if not is_one_release(plan):
        return None
    strength = rows * float(variances.max()) / noise_edge(plan, len(variances))
    return Prediction(strength, LOST_SLOPES, CLEAR_SLOPES, lacking, NUMBERS)


def _predicted_errors(
    design: PrivateDesign, facts: Facts, guarantee: Guarantee, about: Scores | ScoresPure
) -> tuple[Floats, Floats]:
    """Return the predicted noise of slopes times the rows, of one release and about a line.

    Of rows as :mod:`dpmodels.models.assumed_rows` assumes them, whose residuals have the variance
    of the response.
    """
    once = _noise_once(design, Moments().plan(facts, guarantee))
    return once, _noise_about_line(design, about.plan(facts, guarantee))


def _noise_once(design: PrivateDesign, plan: Plan) -> Floats:
    noise = noise_of(plan, event_law(plan.events[0])).off
    return np.asarray(NOISE_IN_GRAM * noise / assumed_variances(design)[:-1])


def _noise_about_line(design: PrivateDesign, plan: Plan) -> Floats:
    spread = np.sqrt(assumed_variances(design))
    length = math.sqrt(plan.facts.columns) * EXPECTED_LIMITS * float(spread[-1])
    return 2 * score_sd(plan, event_law(plan.events[0])) * length / spread[:-1]


def _mostly_noise(design: PrivateDesign, plan: PlanOfStrategy, rows: int) -> Prediction | None:
    """Predict noise that is most of every slope's error without delta; None if it is not."""
    guarantee = plan.guarantee
    if not isinstance(plan, Plan) or not isinstance(guarantee, PureDP) or not rows:
        return None
    spread = np.sqrt(assumed_variances(design))
    sampling = float(spread[-1]) / spread[:-1] * math.sqrt(rows)

    def ratio(noise: Floats) -> float:
        return float((noise / sampling).min())

    is_line = "narrowed" in plan.scales
    per_sampling = ratio(_noise_about_line(design, plan) if is_line else _noise_once(design, plan))
    if per_sampling < MOSTLY_NOISE:
        return None
    gaussian = Scores().plan(plan.facts, ApproxDP(guarantee.eps, DELTA))
    return Prediction(
        per_sampling**-2,
        MOSTLY_NOISE**-2,
        ENOUGH**-2,
        "noise will be most of every slope's error",
        NUMBERS,
        in_noise=2.0,
        with_delta=ratio(_noise_about_line(design, gaussian)) < MOSTLY_NOISE,
    )


def _designed(
    equation: response.TwoSided,
    book: Codebook,
    options: Mapping[str, Option],
    centres: Centres | None,
) -> tuple[PrivateDesign, MomentsCall]:
    design = joint_design(centred_sides(equation, centres or ()), book, **options)
    columns = len(design.public.names)
    settings = {"center": True, "scale": "range", "denoise": None, "ncomp": columns}
    call = moments_call(design, {**settings, "centres": centres})
    return design, replace(call, codebook=book.select(call.codebook))


def _check_centres(stated: Centres, equation: response.TwoSided) -> None:
    if product_centres(equation, stated) != stated:
        raise FrameError(
            "release.centres: expected numbers inside products, whose lower-order terms are in "
            "the formula, and points within their ranges"
        )


def _check_lump(minimum: object, request: Request) -> None:
    between("lump", minimum, 1, LARGEST_LUMP, ", the least number of rows of a level")
    if isinstance(request.guarantee, PureDP):
        raise ArgumentError(
            f"lump={quoted(minimum)} adds Gaussian noise to numbers of rows: write delta=1e-6, or "
            "budget=dp.ZCDP(rho)"
        )
    if request.options["weights"] is not None:
        raise ArgumentError(f"lump={quoted(minimum)}: not available with weights=; leave one out")


def _check(vcov: object, request: Request) -> None:
    if vcov is not None:
        option("vcov", vcov, ("iid", "HC", "cluster"))
    if vcov == "cluster" and request.adjacency.person is None:
        raise ArgumentError(NOBODY)
    if request.codebook.design is None:
        return
    for name, reason in (("vcov", "its own standard errors"), ("lump", "no counts of levels")):
        if request.options.get(name) is not None:
            raise ArgumentError(
                f"{name}={quoted(request.options[name])}: a survey design has {reason}; leave out "
                f"{name}=, or write design=False"
            )


def _check_strategy(strategy: object, weights: object) -> None:
    if not isinstance(strategy, LAWFUL):
        raise ArgumentError(
            f"mechanism= is of type {type(strategy).__name__}; least squares needs moments "
            'with a known noise distribution: "moments", "adassp", or an instance of these'
        )
    if weights is not None and isinstance(strategy, (Ellipsoid, Rounds)):
        raise ArgumentError(
            f"{strategy.info.name} clips rows about their mean, which weights= would move: "
            'leave out weights=, or write mechanism="moments"'
        )


def _kind(vcov: str | None, request: Request, private: Sequence[PrivateDesign]) -> str:
    """Return the type of standard errors, for rows that can be read again where it needs that."""
    if request.codebook.design is not None:
        return "cluster"
    if vcov is None:
        rereadable = all(rows.rereadable for rows in private)
        return "cluster" if rereadable and request.adjacency.person is not None else "iid"
    try:
        for rows in private if vcov != "iid" else ():
            rows.require_passes()
    except FrameError as error:
        raise FrameError(
            f'vcov="{vcov}" reads the rows again once there are coefficients: {error}; or leave '
            "out vcov="
        ) from None
    return vcov
