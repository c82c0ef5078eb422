"""``dp_select``: the names of the largest of many candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from dpmodels.arguments import between, integer, option
from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells
from dpmodels.design.regression import box_design
from dpmodels.errors import ArgumentError, FormulaError, FrameError, quoted, shorten
from dpmodels.formula.parse import check_size
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.sides import Sides, grouping, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms import SELECTION, SelectionMechanism, choose_strategy
from dpmodels.mechanisms.association_score import AssociationScore, GainScore
from dpmodels.mechanisms.choose import Choice, auto_selection
from dpmodels.mechanisms.protocol import AnyStrategy, Score
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Guarantee
from dpmodels.released import SelectionRelease
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.select import COUNT, GAIN, SelectResult

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
    return run_verb(
        "select",
        select_spec,
        formula,
        data,
        shared,
        mechanism,
        k=k,
        score=score,
        threshold=threshold,
        most=most,
        values=values,
    )


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
    request: Request, call: DescribedCall, score: Any, facts: SelectionFacts, private: object
) -> VerbSpec[SelectResult]:
    return VerbSpec(
        request,
        call,
        partial(
            SelectResult,
            score=score,
            n_requested=facts.max_chosen,
            threshold=facts.threshold,
            share=facts.share,
        ),
        private,
        facts,
        partial(_chosen, facts, request.private),
        check=partial(_require_selected, score, facts),
    )


def _require_selected(score: str, facts: SelectionFacts, release: SelectionRelease) -> None:
    """Refuse a release of another number of candidates, or without what its score releases."""
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


def _score(request: Request, *scores: str) -> Any:
    """Return the requested score, the first one by default."""
    score = request.options["score"]
    hint = "; '~ town' ranks levels by count, 'y ~ .' columns by correlation, z or gain"
    return scores[0] if score is None else option("score", score, scores, hint)


def _ranked_by(kind: Any, size: int) -> Score:
    """Return the score of columns."""
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
    return DescribedCall(response.formula, Codebook(equation.joint.codebook), (table,))


def _chosen(
    facts: SelectionFacts, guarantee: Guarantee, mechanism: object, private: Sequence[object]
) -> Choice[AnyStrategy]:
    return choose_strategy(mechanism, SELECTION, lambda: auto_selection(facts, guarantee))


def selection_facts(request: Request, score: Score, kind: str) -> SelectionFacts:
    """Return the public facts of a selection; ArgumentError for numbers that contradict it."""
    options = request.options
    k, threshold, limit = options["k"], options["threshold"], options["most"]
    values = _share(options["values"], SHARES[kind], MOST_SHARE - score.own_share)
    if threshold is None:
        if limit is not None:
            raise ArgumentError(
                f"most={quoted(limit)} is the limit above a threshold; write k= for the number to "
                "select, or threshold= too"
            )
        number = integer("k", 1 if k is None else k, 1, score.size, _candidates(score))
        return SelectionFacts(score, number, None, values, request.adjacency)
    if k is not None:
        raise ArgumentError(
            "k= and threshold= are both given: write k= for the largest k, or threshold= and most= "
            "for those above it"
        )
    write = "; write threshold=100 of rows, 0.1 of a correlation, or 3 with score='z'"
    lower = between("threshold", threshold, 0.0, LARGEST[kind], write)
    number = integer(
        "most", min(MOST, score.size) if limit is None else limit, 1, score.size, _candidates(score)
    )
    return SelectionFacts(score, number, lower, values, request.adjacency)


def _candidates(score: Score) -> str:
    return f", as many as the formula has to choose among; it has {score.size:,}"


def _share(values: object, default_share: float, max_share: float) -> float:
    """Return the share of the budget for values; 0 where none are wanted."""
    if isinstance(values, bool):
        return default_share if values else 0.0
    return between(
        "values",
        values,
        LEAST_SHARE,
        max_share,
        ", a share of the budget that is useful for values and leaves some for names; or write "
        "True or False",
    )


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
