"""``dp_fdr``: which of many columns depend on a response, at a false discovery rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final, Literal, Unpack

from dpmodels.arguments import fraction, integer, option
from dpmodels.codebook import Codebook
from dpmodels.design import PrivateDesign
from dpmodels.design.regression import box_design
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.parse import check_size, parsed_formula, variables_in
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.sides import marks
from dpmodels.inference.screening_tests import METHODS
from dpmodels.mechanisms import SCREENING, ScreeningMechanism, choose_strategy
from dpmodels.mechanisms.choose import Choice, two_digits
from dpmodels.mechanisms.screening_plan import LAWS, ScreenFacts, calibrated
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Guarantee
from dpmodels.request import Request
from dpmodels.results.call import ScreenCall
from dpmodels.results.fdr import FDRResult
from dpmodels.sites import together

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
    return run_verb(
        "fdr",
        fdr_spec,
        formula,
        data,
        shared,
        mechanism,
        q=q,
        most=most,
        method=method,
        alternative=alternative,
    )


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
        codebook=Codebook(design.public.codebook),
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
