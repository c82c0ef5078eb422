"""``dp_survey``: tables and regressions of randomised answers, free of charge."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from dpmodels.arguments import checked_keywords, option
from dpmodels.codebook import Codebook, of_variables
from dpmodels.design import row_coder
from dpmodels.devices.randomized_response import Bit, UnaryDevice
from dpmodels.errors import FormulaError, entry_point, shorten
from dpmodels.formula.parse import parsed_formula
from dpmodels.formula.response import TwoSided, two_sided
from dpmodels.formula.sides import parse_sides
from dpmodels.frames.delimited import CsvMode
from dpmodels.mechanisms.counts.randomized_response import MOST_CELLS
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.linear import levels
from dpmodels.models.table import counted
from dpmodels.noise import simulating
from dpmodels.privacy import PureDP, adjacency
from dpmodels.released import AnswersFitRelease, AnswersRelease, Channel, MechanismInfo
from dpmodels.request import Request
from dpmodels.resolve_codebook import Resolved, codebook_of_call
from dpmodels.results.call import INTERCEPT, CoefficientsCall, Spec
from dpmodels.results.survey import SurveyFitResult, SurveyResult
from dpmodels.sites.parties import parties, with_csv
from dpmodels.surveys import answers as survey_answers
from dpmodels.surveys.answers import Devices, Strata
from dpmodels.variables import Categorical
from dpmodels.verbs import spec_of

INFO = MechanismInfo(
    name="respondents' devices",
    theorem="eps-DP for each respondent, against whoever sees the answers",
    sensitivity="one respondent's answers; columns that came as they were are not protected",
    noise="by each respondent, before answering",
    numerics="as the devices were used",
    source="Warner (1965); Boruch (1971); Greenberg et al. (1969)",
)
UNCHARGED = "none charged: answers came in randomised"


@checked_keywords("dp.dp_survey")
@entry_point
def dp_survey(
    formula: str,
    answers: object,
    *,
    device: Devices | None = None,
    codebook: Resolved = None,
    weights: str | None = None,
    strata: Strata = None,
    method: Literal["score", "likelihood"] = "score",
    csv: CsvMode | None = None,
) -> SurveyResult | object:
    """Analyse answers that respondents randomised themselves: estimates, errors, tests, regression.

    Parameters
    ----------
    formula : str
        ``"~ drug + sex"``: the proportions of all combinations of answers, with at least one
        randomised question. ``"drug ~ age + sex"``: logistic regression of a randomised answer of
        two levels, or compared with one, ``"drug == 'often' ~ age"``, by terms that were not
        randomised.
    answers : frame
        The reported answers, one row per respondent, in any format that other verbs read.
    device : mapping
        The device of each randomised question, by its variable. Of a device of
        :func:`unary_response` the answers have a column for each level, and the formula
        names the question: ``"~ town"``, ``device={"town": device}``.
    codebook : Codebook, mapping, draft, path or None
        Public bounds and levels of the other variables; the device has the levels of randomised
        ones.
    weights : str, optional
        A number of the codebook: the weight of each respondent. Respondents without a positive
        weight are left out.
    strata : str or mapping, optional
        A category of the codebook within which respondents were drawn. With the
        population's shares or sizes, ``{"region": {"n": 0.4, "s": 0.6}}``,
        a table is weighted to these.
    method : {"score", "likelihood"}
        How a regression is fitted. ``"score"`` solves the corrected score: the estimating equation
        of logistic regression of the true answers, with an unbiased number for each of them.
        ``"likelihood"`` maximises the likelihood of the answers.
    csv : {"records", "lines"}, optional
        What a row of a CSV file is, see :func:`dp_pca`.

    Returns
    -------
    SurveyResult or SurveyFitResult
        A table, or a regression.

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, FrameError
        Before an answer is read.

    Notes
    -----
    Nothing is charged: the answers are already randomised. The guarantee is local. It holds for
    each respondent, for the randomised answers of the formula together, and requires that the
    device was used before answering, which cannot be checked. Columns that were not randomised,
    such as age or sex, are not protected: their counts, and fits by them, are as exact as in any
    survey.

    A respondent whose answer is missing, or impossible under the device, counts as incomplete and
    is left out. Proportions are of the others.

    The corrected score is the default since it estimates the same coefficients as logistic
    regression of the true answers, whether or not the model is correct. The likelihood has that
    target only if it is; otherwise its target depends on the device. In return its standard errors
    are smaller: by a hundredth where probabilities differ little, by up to a quarter where effects
    are strong.

    References
    ----------
    .. [1] Warner, S. L. (1965). "Randomized response." JASA 60(309), 63-69.
    .. [2] Heck, D. W. and Moshagen, M. (2018). "RRreg: an R package for correlation and
       regression analyses of randomized response data." J. Stat. Software 85(2).
    .. [3] Carroll, R. J., Ruppert, D., Stefanski, L. A. and Crainiceanu, C. M. (2006). "Measurement
       error in nonlinear models", chapter 7. Chapman and Hall.

    Examples
    --------
    >>> import dpmodels as dp
    >>> device = dp.randomized_response(["no", "yes"], eps=1.0)
    >>> truths = ["no"] * 700 + ["yes"] * 300
    >>> answers = {"drug": device.randomize(truths), "sex": ["F", "M"] * 500}
    >>> cb = dp.codebook(sex=["F", "M"])
    >>> fit = dp_survey("~ drug", answers, codebook=cb, device={"drug": device})
    >>> fit.estimate.sizes, fit.ncomplete
    (Frozen({'drug': 2}), 1000.0)
    >>> list(dp_survey("drug ~ sex", answers, codebook=cb, device={"drug": device}).params.index)
    ['Intercept', 'sex[T.M]']
    """
    devices = survey_answers.checked_devices(device)
    method = option("method", method, ("score", "likelihood"))
    declared = Codebook()
    if codebook is not None:
        declared = codebook_of_call(codebook, answers, None, formula)
    book = survey_answers.with_levels(declared, devices)
    (answers,) = with_csv((answers,), csv)
    arguments = formula, answers, book, devices, weights, strata
    options = {"weights": weights, "strata": None}
    if parsed_formula(formula, book).response:
        release: AnswersFitRelease | AnswersRelease = _modelled(*arguments, method)
        options["method"] = method
    else:
        release = _tabulated(*arguments)
    options["strata"] = release.stratified
    stated = release.guarantee, release.adjacency, options
    return survey_spec(Request("survey", formula, book, *stated)).of(release, UNCHARGED)


def _tabulated(
    formula: str,
    answers: object,
    book: Codebook,
    devices: Devices,
    weights: str | None,
    strata: Strata,
) -> AnswersRelease:
    formula_sides = parse_sides(formula, book)
    tally = counted(formula_sides)
    if tally.cells > MOST_CELLS:
        raise FormulaError(
            f"formula {shorten(formula_sides.text)!r} has {tally.cells:,} combinations of answers; "
            f"at most {MOST_CELLS:,} are estimated. Use fewer questions or levels"
        )
    used = formula_sides.codebook
    unary = devices.get(tally.factors[0].code.strip("`")) if len(tally.factors) == 1 else None
    if isinstance(unary, UnaryDevice):
        names = [str(level) for level in tally.factors[0].levels]
        used = Codebook(dict.fromkeys(names, Categorical((0, 1))))
        channels: tuple[Channel, ...] = (Bit(unary.eps).channel,)
        count = partial(survey_answers.counted_bits, names=names)
    else:
        channels = survey_answers.channels_of(formula_sides.text, tally.factors, used, devices)
        count = partial(survey_answers.counted_answers, tally=tally)
    who = survey_answers.respondents(answers, used, book, weights, strata)
    numbers = count(who)
    return AnswersRelease(
        values=numbers.values,
        weights=None if weights is None else numbers.weights,
        squares=None if weights is None else numbers.squares,
        channels=channels,
        strata=who.strata,
        shares=who.shares,
        incomplete=numbers.incomplete,
        unary=isinstance(unary, UnaryDevice) or None,
        **_terms(who, channels, numbers.complete + numbers.incomplete),
    )


def _modelled(
    formula: str,
    answers: object,
    book: Codebook,
    devices: Devices,
    weights: str | None,
    strata: Strata,
    method: str,
) -> AnswersFitRelease:
    name = strata if isinstance(strata, str) else next(iter(strata or ()), None)
    excluded = [name for name in (weights, name) if name is not None]
    equation = two_sided(formula, book, excluded=excluded)
    channel = _channel(equation, devices)
    used = of_variables({**equation.terms.codebook, **equation.response.codebook})
    levels(equation, "dp_survey")
    who = survey_answers.respondents(answers, used, book, weights, strata)
    if who.shares is not None:
        raise FormulaError(
            f"formula {shorten(formula)!r} is a regression, which is not weighted by a "
            f"population's shares; write strata={who.stratified!r}, and weights= of the respondents"
        )
    fit, null, complete, incomplete = survey_answers.fitted_answers(
        who, equation, channel.truth, (1 - channel.truth) * channel.law[1], method
    )
    return AnswersFitRelease(
        coefficients=fit.coefficients,
        covariance=fit.covariance,
        noise_covariance=fit.noise_covariance,
        channel=channel,
        complete=complete,
        log_likelihood=fit.log_likelihood,
        log_likelihood_null=null.log_likelihood,
        method=method,
        **_terms(who, (channel,), complete + incomplete),
    )


@spec_of("survey")
def survey_spec(request: Request) -> Spec[object]:
    """Return the public facts of a table, or of a regression, of answers."""
    book = request.codebook
    if not parsed_formula(request.formula, book).response:
        formula_sides = parse_sides(request.formula, book)
        call = descriptive_call(formula_sides, (counted(formula_sides),))
        return Spec(request, call, SurveyResult)
    variables = (request.options.get("weights"), request.options.get("strata"))
    excluded = [str(name) for name in variables if name is not None]
    equation = two_sided(request.formula, book, excluded=excluded)
    used = of_variables({**equation.terms.codebook, **equation.response.codebook})

    def fitted(call: CoefficientsCall, release: AnswersFitRelease) -> SurveyFitResult:
        coder = row_coder(equation.terms) if equation.terms.names else None
        return SurveyFitResult(call, release, coder)

    return Spec(request, fit_call(equation, used), fitted)


def fit_call(equation: TwoSided, used: Codebook) -> CoefficientsCall:
    """Return the public facts of a regression of answers."""
    names = (INTERCEPT,) * equation.intercept + equation.terms.names
    return CoefficientsCall(
        formula=equation.terms.formula,
        codebook=used,
        names=names,
        response=equation.response.names[0],
        levels=levels(equation, "dp_survey"),
        family="binomial",
        matrix=np.eye(len(names)),
        row_norm=1.0,
        worst_case=1.0,
        scale=None,
        clip=math.nan,
    )


def _channel(equation: TwoSided, devices: Devices) -> Channel:
    randomized = [name for name in equation.terms.codebook if name in devices]
    if randomized:
        raise FormulaError(
            f"{randomized[0]!r} was randomised and stands on the right-hand side, where its error "
            "would bias the coefficient towards 0; write it as the response, or cross it, '~ "
            f"{randomized[0]} + ...'"
        )
    response = equation.response.blocks[0].factors[0]
    names = tuple(equation.response.codebook)
    if len(names) != 1 or names[0] not in devices:
        raise FormulaError(
            f"the response {shorten(response.code)!r} was not randomised by itself: name one "
            "question of device=, or use dp_glm, which charges a budget"
        )
    (name,) = names
    channel = survey_answers.channel_of(name, equation.response.codebook, devices[name])
    indicator = np.asarray(response.evaluate({name: np.arange(float(len(channel.law)))}))
    if not 0 < indicator.sum() < len(indicator):
        raise FormulaError(
            f"the response {shorten(response.code)!r} is the same for all answers; compare with "
            "one of the levels"
        )
    probability = float(indicator @ np.array(channel.law))
    return Channel(channel.truth, (1 - probability, probability), channel.eps, channel.how)


def _terms(
    who: survey_answers.Respondents, channels: Iterable[Channel], rows: int
) -> dict[str, Any]:
    """Return the fields that all releases of a survey have; a respondent is one row."""
    return {
        "rows": rows,
        "info": INFO,
        "guarantee": PureDP(math.fsum(channel.eps for channel in channels)),
        "adjacency": adjacency("replace"),
        "events": (),
        "simulated": simulating(),
        "weighted": who.weighted,
        "stratified": who.stratified,
        "table": tuple(("Records", text) for text in parties(who.data).records) or None,
    }
