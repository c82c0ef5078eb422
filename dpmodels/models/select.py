"""``dp_select``: the largest of many candidates; ``dp_fdr``: columns associated with a response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal, Unpack

from dpmodels.arguments import between, fraction, integer, option
from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign
from dpmodels.design.cells import unbound_cells
from dpmodels.design.regression import box_design
from dpmodels.errors import ArgumentError, FormulaError, FrameError, quoted, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.parse import check_size, parsed_formula, variables_in
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.sides import Sides, grouping, marks, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.inference.screening_tests import METHODS
from dpmodels.mechanisms import (
    SCREENING,
    SELECTION,
    ScreeningMechanism,
    SelectionMechanism,
    choose_strategy,
)
from dpmodels.mechanisms.association_score import AssociationScore, GainScore
from dpmodels.mechanisms.choose import Choice, two_digits
from dpmodels.mechanisms.protocol import Score
from dpmodels.mechanisms.screening_plan import LAWS, ScreenFacts, calibrated
from dpmodels.mechanisms.selection import auto_selection
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Guarantee
from dpmodels.released import SelectionRelease
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, ScreenCall, TableCall
from dpmodels.results.discoveries import COUNT, GAIN, FDRResult, SelectResult
from dpmodels.sites import together
from dpmodels.verbs import spec_of

# Choices: shares of the budget for values, by score. A row is in one level, so that counts of all
# selected levels cost no more than those of two; every column's value costs as much as the first,
# and score="gain" also releases coefficients.
SHARES = {COUNT: 1 / 3, "correlation": 0.4, "z": 0.4, GAIN: 0.25}
# A choice: more leaves nothing for the draws. The score's own share is subtracted.
MOST_SHARE = 0.9
# A choice: candidates for products of all pairs, of which time and memory grow with the square.
MOST_PAIRED = 300
# Candidates, at least.
FEWEST = 2
# A choice: with less the values, or the ranking, add no information.
LEAST_SHARE = 0.01
# A choice: most selected above a threshold.
MOST = 10
# Largest thresholds by score; correlations are at most 1.
LARGEST = {COUNT: 1e12, "correlation": 1.0, "z": 1e12, GAIN: 1.0}


@verb
def dp_select(
    formula: str,
    data: object = None,
    *,
    k: int | None = None,
    score: str | None = None,
    threshold: float | None = None,
    most: int | None = None,
    values: bool | float = True,
    mechanism: str | SelectionMechanism = "auto",
    **shared: Unpack[Shared],
) -> SelectResult:
    """Select the largest of many candidates: the commonest levels, or the best predictors.

    Parameters
    ----------
    formula : str
        ``"~ town"``: the commonest declared levels; ``"~ town:job"``: the commonest combinations;
        ``"~ cut(age, [0, 30, 60, 100])"``: the fullest classes. ``"wage ~ ."``: the columns that
        depend most on a number, or on a variable of two levels; each column of a category is a
        candidate of its own.
    protocol
        Here ``"pooled"`` or ``"local"``; for levels also ``"secure_sum"``, which shows noisy counts
        of all of them to the sites.
    k : int, optional
        How many to name, from 1 to the number of candidates; 1 by default.
    score : {"count", "correlation", "z", "gain"}, optional
        The score of levels, or columns; "count" or "correlation" by default. "correlation" and "z"
        rank columns by the size of their correlation with the response and set the unit of
        threshold and values: z is the correlation times the root of the number of rows, which with
        ``rows=4`` is divided by 4, as those of a person may be alike. "gain" is forward selection,
        of 300 candidates at most: each column is selected for what it adds to a fit of those
        selected before, so that of two collinear columns one is selected.
    threshold : float, optional
        Instead of `k`: select those above it, up to noise. At least 0, in rows or persons; for
        columns the size of a correlation, up to 1, or of z.
    most : int, optional
        How many are selected above a threshold, at most; 10 by default.
    values : bool or float, default True
        Share of the budget for fresh noisy values of the selection, from 0.01 to 0.9, or 0.65 for
        columns: a third, or 0.4, by default. Only they show how certain the order is. False for
        names alone.
    mechanism : {"auto", "permute_and_flip", "peeling", "noisy_counts", "sparse_vector"} or instance
        By default the one with the least noise in the ranking: for one name mostly
        permute-and-flip, for several levels noise on all counts, for several columns peeling where
        a delta is allowed; above a threshold noise on all counts, or the sparse vector technique,
        which follows the order of the formula and selects the first `most` above it.

    Returns
    -------
    SelectResult

    Notes
    -----
    Values that won a ranking are biased upwards, and the ranking does not separate the k-th from
    the next. So it gives names only, and values get fresh noise. For the counts of all levels use
    :func:`dp_table`.

    Correlations are about a noisy mean of the response, with noisy spreads of the columns. A column
    that fills a small part of its public bounds ranks too low for its correlation: the report says
    from what part on. Declare bounds that rows fill.

    With ``score="gain"`` [3]_ a fifth of the budget is for coefficients, by which the fit of the
    selected columns is subtracted from the response before the next is drawn. Large coefficients
    increase residuals, and so the noise. The values are shares of the response's sum of squares;
    :meth:`SelectResult.cumulative` adds them up.

    References
    ----------
    .. [1] McKenna, R. and Sheldon, D. (2020). "Permute-and-flip: a new
       mechanism for differentially private selection." NeurIPS.
    .. [2] Durfee, D. and Rogers, R. (2019). "Practical differentially private
       top-k selection with pay-what-you-get composition." NeurIPS.
    .. [3] Mallat, S. G. and Zhang, Z. (1993). "Matching pursuits with
       time-frequency dictionaries." IEEE Trans. Signal Process. 41(12).

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(town=["Bonn", "Rust", "Ulm"])
    >>> rows = {"town": ["Bonn"] * 300 + ["Rust"] * 20 + ["Ulm"] * 900}
    >>> fit = dp_select("~ town", rows, codebook=cb, k=2, eps=1.0)
    >>> fit.selected
    ('Ulm', 'Bonn')
    """
    return run_verb("select", select_spec, **locals())


@spec_of("select", joint="noisy_counts")
def select_spec(request: Request) -> VerbSpec[SelectResult]:
    """Build the specification of a dp_select call."""
    formula = request.formula
    check_size(formula)
    left, mark, _ = formula.partition("~")
    return _columns_spec(request) if mark and left.strip() else _levels_spec(request)


def _levels_spec(request: Request) -> VerbSpec[SelectResult]:
    formula_sides = parse_sides(request.formula, request.codebook)
    tally = levels(formula_sides)
    facts = selection_facts(request, LevelScore(tally.cells), _score(request, COUNT))
    private = unbound_cells(formula_sides.text, formula_sides.codebook, (tally,))
    return _way(request, descriptive_call(formula_sides, (tally,)), COUNT, facts, private)


def _columns_spec(request: Request) -> VerbSpec[SelectResult]:
    equation = columns(request.formula, request.codebook)
    kind = _score(request, "correlation", "z", GAIN)
    facts = selection_facts(request, _ranked_by(kind, len(equation.terms.names)), kind)
    return _way(request, columns_call(equation), kind, facts, box_design(equation))


def _way(
    request: Request, call: DescribedCall, score: str, facts: SelectionFacts, private: object
) -> VerbSpec[SelectResult]:
    """Build the specification of a selection, of levels or of columns."""
    result = partial(SelectResult, score=score, threshold=facts.threshold, share=facts.share)
    return VerbSpec(
        request,
        call,
        partial(result, n_requested=facts.max_chosen),
        private,
        facts,
        lambda mechanism, _: choose_strategy(
            mechanism, SELECTION, partial(auto_selection, facts, request.private)
        ),
        check=partial(_require_selected, score, facts),
    )


def _require_selected(score: str, facts: SelectionFacts, release: SelectionRelease) -> None:
    number = len(release.places)
    if number > facts.max_chosen or (facts.threshold is None and number != facts.max_chosen):
        raise FrameError("release.places: not as many as the request asks for")
    if score == COUNT:
        return
    missing = {part is None for part in (release.values, release.scatters, release.response)}
    if release.count is None or release.least is None or len(missing) > 1:
        raise FrameError("release: the number of rows or moments of columns are missing")
    if (score == GAIN) != (release.slopes is not None):
        raise FrameError("release.slopes: expected coefficients where columns are of most gain")


def _score(request: Request, *scores: str) -> str:
    score = request.options["score"]
    hint = "; '~ town' ranks levels by count, 'y ~ .' columns by correlation, z or gain"
    return scores[0] if score is None else option("score", score, scores, hint)


def _ranked_by(kind: Any, size: int) -> Score:
    if kind != GAIN:
        return AssociationScore(size, kind)
    if size > MOST_PAIRED:
        raise ArgumentError(
            f"score='gain' ranks {MOST_PAIRED} columns at most, and the formula has {size:,}: "
            "write fewer of them, or score='correlation'"
        )
    return GainScore(size)


def columns(formula: str, codebook: Codebook) -> TwoSided:
    """Code a formula whose columns are the candidates."""
    equation = two_levels(two_sided(formula, codebook))
    if len(equation.terms.names) < FEWEST or equation.offset:
        raise FormulaError(
            f"formula {shorten(formula)!r}: name the columns to choose among on the right, two at "
            "least and no offset; write 'y ~ .' or 'y ~ a + b + c'"
        )
    return equation


def columns_call(equation: TwoSided) -> DescribedCall:
    """Return the public facts of a selection of columns."""
    response = equation.response
    table = TableCall(
        ("term",),
        (equation.terms.names,),
        measured=response.names[0],
        lower=float(response.lower[0]),
        upper=float(response.upper[0]),
    )
    return DescribedCall(response.formula, equation.joint.codebook, (table,))


def selection_facts(request: Request, score: Score, kind: str) -> SelectionFacts:
    """Return the public facts of a selection; ArgumentError for numbers that contradict it."""
    options = request.options
    k, threshold, limit = options["k"], options["threshold"], options["most"]
    values = _share(options["values"], SHARES[kind], MOST_SHARE - score.own_share)
    candidates = f", as many as the formula has to choose among; it has {score.size:,}"
    if threshold is None:
        if limit is not None:
            raise ArgumentError(
                f"most={quoted(limit)} is the limit above a threshold; write k= for the number to "
                "select, or threshold= too"
            )
        number = integer("k", 1 if k is None else k, 1, score.size, candidates)
        return SelectionFacts(score, number, None, values, request.adjacency)
    if k is not None:
        raise ArgumentError(
            "k= and threshold= are both given: write k= for the largest k, or threshold= and most= "
            "for those above it"
        )
    write = "; write threshold=100 of rows, 0.1 of a correlation, or 3 with score='z'"
    lower = between("threshold", threshold, 0.0, LARGEST[kind], write)
    limit = min(MOST, score.size) if limit is None else limit
    number = integer("most", limit, 1, score.size, candidates)
    return SelectionFacts(score, number, lower, values, request.adjacency)


def _share(values: object, default_share: float, max_share: float) -> float:
    """Return the share of the budget for values; 0 where none are wanted."""
    if isinstance(values, bool):
        return default_share if values else 0.0
    write = (
        ", a share of the budget that is useful for values and leaves some for names; or write "
        "True or False"
    )
    return between("values", values, LEAST_SHARE, max_share, write)


def levels(formula_sides: Sides) -> Tally:
    """Return the one table whose cells are the candidates of a formula."""
    products = {term for terms in formula_sides.terms for term in terms}
    text = shorten(formula_sides.text)
    if formula_sides.groups or not formula_sides.described:
        raise FormulaError(
            f"formula {text!r}: levels of one variable, or of one product, are selected; write '~ "
            "town' or '~ town:job'"
        )
    if len(products) > 1:
        cross = shorten(":".join(code.code for code in formula_sides.described))
        raise FormulaError(
            f"formula {text!r} has several terms, and levels of one are selected at a time; write "
            f"'~ {cross}' for the combinations, or one dp_select for each"
        )
    return Tally(tuple(map(grouping, formula_sides.described)))


ALTERNATIVES: Final = ("two-sided", "larger", "smaller")
# A choice: so many columns are tested by default, and one more for each ten above them.
FEW: Final = 10
# A choice: noise in a test of all columns, in standard errors, that is negligible.
QUIET: Final = 0.25


@verb
def dp_fdr(
    formula: str,
    data: object = None,
    *,
    q: float = 0.1,
    most: int | None = None,
    method: Literal["bh", "by"] = "bh",
    alternative: Literal["two-sided", "larger", "smaller"] = "two-sided",
    mechanism: str | ScreeningMechanism = "auto",
    **shared: Unpack[Shared],
) -> FDRResult:
    """Find which of many columns depend on a response, at a false discovery rate.

    Parameters
    ----------
    formula : str
        ``"g1 + g2 + g3 ~ case"``, or ``". ~ case"`` for all other variables of
        the codebook. On the right a number, a condition, or a category of two
        levels; on the left what a regression takes as terms: a category gives a
        hypothesis for each level but its first.
    codebook
        Columns are counted in half-ranges of what is declared: bounds that columns
        fill cost no power.
    protocol
        Here ``"pooled"``, ``"secure_sum"`` or ``"local"``.
    data
        Rows with a missing cell in any column are incomplete.
    q : float
        The false discovery rate, in (0, 1): the expected share of true null
        hypotheses among those rejected.
    most : int, optional
        How many columns are tested; the others are never rejected. By default 10, and one more for
        each ten columns, or all if they are fewer.
    method : {"bh", "by"}
        Benjamini-Hochberg, or Benjamini-Yekutieli for columns that depend on
        each other in any way.
    alternative : {"two-sided", "larger", "smaller"}
        Whether columns may rise or fall with the response, or only one of these, which leaves them
        more of the budget.
    mechanism : {"auto", "peeling", "moments", "centred", "adapt", "dp_bh"} or instance
        ``"peeling"`` draws columns by their covariance with the response, then releases sums of the
        drawn ones with fresh noise; ``"moments"`` releases those of all columns. The one with less
        noise by default, or ``"moments"`` where that has hardly any. ``"centred"`` is ``"moments"``
        about released means, which sites of ``"secure_sum"`` share. ``"adapt"`` is peeling by size
        for one side, with its own rule instead of `method`: the other side estimates the number of
        false discoveries. It needs a delta. ``"dp_bh"`` peels logarithms of p-values as was
        published [1]_, for comparison: its noise covers the sensitivity of a row and leaves hardly
        any discovery below millions of rows.

    Returns
    -------
    FDRResult

    Notes
    -----
    A p-value is of the hypothesis that column and response are independent. It is the largest over
    the variances of the column that its noise leaves possible. Columns are drawn by their
    covariance in half-ranges: one that hardly varies within its bounds is drawn late, whatever its
    correlation. Under ``"bh"`` the false discovery rate is at most ``q (1 + log(1/q))`` for
    independent columns, and in simulations at most `q`; under ``"by"`` it is at most `q` for any
    columns.

    References
    ----------
    .. [1] Dwork, C., Su, W. and Zhang, L. (2018). "Differentially private false
       discovery rate control." arXiv:1807.04209.
    .. [2] Benjamini, Y. and Hochberg, Y. (1995). "Controlling the false discovery
       rate." Journal of the Royal Statistical Society B 57, 289-300.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook.uniform(["g1", "g2", "g3"], (0, 2)) | dp.codebook(case=["no", "yes"])
    >>> rows = {"g1": [0, 2] * 4000, "g2": [0, 0, 2, 2] * 2000, "g3": [0, 2, 2, 0] * 2000}
    >>> rows["case"] = ["no", "yes"] * 4000
    >>> dp_fdr("g1 + g2 + g3 ~ case", rows, codebook=cb, eps=1.0, delta=1e-6).rejected
    ['g1']
    """
    return run_verb("fdr", fdr_spec, **locals())


@spec_of("fdr", joint="centred")
def fdr_spec(request: Request) -> VerbSpec[FDRResult]:
    """Build the specification of a dp_fdr call."""
    options = request.options
    level = fraction("q", options["q"], ", such as 0.1")
    method = option("method", options["method"], tuple(METHODS))
    alternative = option("alternative", options["alternative"], ALTERNATIVES)
    equation = screened(request.formula, request.codebook)
    design, n_columns = box_design(equation), len(equation.terms.names)
    max_columns = min(n_columns, FEW + n_columns // FEW)
    if options["most"] is not None:
        write = f", as there are {n_columns:,} columns, or None"
        max_columns = integer("most", options["most"], 1, n_columns, write)
    facts = ScreenFacts(n_columns, max_columns, alternative, request.adjacency, level)

    call = ScreenCall(
        formula=" ".join(request.formula.split()),
        codebook=design.public.codebook,
        names=equation.terms.names,
        response=equation.response.names[0],
        most=max_columns,
        alternative=alternative,
    )
    result = partial(FDRResult, q=level, method=method)

    def chosen(mechanism: object, private: Sequence[PrivateDesign]) -> Choice[ScreeningMechanism]:
        return choose_strategy(mechanism, SCREENING, lambda: _auto(facts, request.private, private))

    return VerbSpec(request, call, result, design, facts, chosen)


def screened(formula: str, codebook: Codebook) -> TwoSided:
    """Code a formula whose left-hand columns are tested against the right-hand side."""
    book = checked_codebook(codebook)
    check_size(formula)
    positions, text = marks(formula), shorten(" ".join(formula.split()))
    if len(positions) != 1 or formula[positions[0]] != "~" or not formula[: positions[0]].strip():
        raise FormulaError(
            f"formula {text!r}: dp_fdr tests columns against one response; write 'a + b + c ~ y', "
            "or '. ~ y' for all other variables of the codebook"
        )
    left, right = formula[: positions[0]], formula[positions[0] + 1 :]
    response = parsed_formula(f"~ {right}", ()).predictors
    for factor in {code for term in response for code in term}:
        compile_factor(factor, book)
    if len(response) != 1 or len(response[0]) != 1:
        raise FormulaError(
            f"formula {text!r}: the response is one variable on the right-hand side; write 'a + b "
            "+ c ~ y' or '. ~ y', and for another response another call"
        )
    (code,) = response[0]
    predictors = [name for name in book if name not in variables_in(code)]
    if response[0] in parsed_formula(f"~ {left}", predictors).predictors:
        raise FormulaError(f"formula {text!r} has {shorten(code)!r} on both sides; write it on one")
    equation = two_levels(two_sided(f"{right} ~ {left}", book))
    if equation.offset or not equation.terms.names:
        raise FormulaError(
            f"formula {text!r} names no column on its left side that could be tested; write "
            "'a + b + c ~ y', without offset()"
        )
    return equation


def _auto(
    facts: ScreenFacts, guarantee: Guarantee, private: Sequence[PrivateDesign]
) -> tuple[str, str]:
    """Choose by the noise of a product, in standard errors where the number of rows is public."""
    n_moved = 2 if facts.adjacency.n_public else 1
    sds = {
        name: n_moved * plan.products * LAWS[plan.law].sd
        for name, peeled in (("peeling", True), ("moments", False))
        for plan in (calibrated(facts, guarantee, with_draws=peeled),)
    }
    rows = together([source.nrows for source in private], 1) if facts.adjacency.n_public else None
    if rows and sds["moments"] <= QUIET * math.sqrt(rows):
        share_of = two_digits(sds["moments"] / math.sqrt(rows))
        return "moments", (
            f"with all columns at once the noise is {share_of} standard errors, of a column that "
            "fills its bounds."
        )
    best = min(sds, key=lambda name: sds[name])
    runner_up = "moments" if best == "peeling" else "peeling"
    return best, (
        f"its noise in a sum has an sd of {two_digits(sds[best])}; that of {runner_up} would "
        f"have {two_digits(sds[runner_up])}."
    )
