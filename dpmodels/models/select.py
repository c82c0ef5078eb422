"""``dp_select``: the largest of many things, by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from dpmodels.arguments import between, whole, word
from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_cells
from dpmodels.design.regression import box_design
from dpmodels.errors import ArgumentError, FormulaError, FrameError, said, shorten
from dpmodels.formula.parse import check_size
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.sides import Sides, grouping, sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms import SELECTION, SelectionMechanism, choose
from dpmodels.mechanisms.association_score import AssociationScore, GainScore
from dpmodels.mechanisms.choose import Choice, auto_selection
from dpmodels.mechanisms.protocol import Score
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts
from dpmodels.models.crossing import Way
from dpmodels.models.describing import described_call
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.privacy import Guarantee
from dpmodels.question import Question
from dpmodels.released import SelectionRelease
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.select import COUNT, GAIN, SelectResult

# Of the budget, for values, by score: choices. A row is in one level, so that counts of all that
# are named cost no more than that of two; of columns each value costs as much as the first, and
# those of most gain have coefficients besides.
SHARES = {COUNT: 1 / 3, "correlation": 0.4, "z": 0.4, GAIN: 0.25}
# More leaves draws nothing: a choice. What scores buy of their own comes off it.
MOST_SHARE = 0.9
# Candidates that products of all pairs are made of, a choice: time and memory go by its square.
MOST_PAIRED = 300
# Things to choose among.
FEWEST = 2
# Less leaves values, or a ranking, that tell nothing the other does not: a choice.
LEAST_SHARE = 0.01
# How many are named above a threshold, at most: a choice.
MOST = 10
# Thresholds by score; of correlations there is none beyond 1.
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
    """Name the largest of many things: the commonest levels, or the best predictors.

    Parameters
    ----------
    formula : str
        ``"~ town"``: the commonest declared levels; ``"~ town:job"``: the commonest
        combinations; ``"~ cut(age, [0, 30, 60, 100])"``: the fullest classes.
        ``"wage ~ ."``: the columns that go best with a number, or with a variable
        of two levels; each column of a category is a candidate of its own.
    protocol
        Here ``"pooled"`` or ``"local"``.
    k : int, optional
        How many to name, from 1 to the number of candidates; 1 by default.
    score : {"count", "correlation", "z", "gain"}, optional
        What levels, or columns, are ranked by; "count" or "correlation" by default.
        The next two rank columns by the size of their correlation with the response,
        and say in which unit threshold and values are: z is the correlation times the
        root of the number of rows, which with ``rows=4`` is divided by 4, as those
        of a person may be alike. "gain" is forward selection, of 300 candidates at
        most: each column is named for what it adds to a fit of those named before,
        so that of two that say the same one is named.
    threshold : float, optional
        Instead of `k`: name those above it, from 0 up. In rows, or persons; of
        columns a size of a correlation, up to 1, or of z, but for noise.
    most : int, optional
        How many are named above a threshold, at most; 10 by default.
    values : bool or float, default True
        Share of the budget for fresh noisy values of what is named, from 0.01 to
        0.9, or 0.65 of columns: a third, or 0.4, by default. They are all that tells
        how sure the order is. False for names alone.
    mechanism : {"auto", "permute_and_flip", "peeling", "noisy_counts", "sparse_vector"} or instance
        The one whose noise in the ranking goes least far, by default: of one name
        mostly permute-and-flip, of several levels noise on all counts, of several
        columns peeling where a delta is allowed; above a threshold noise on all
        counts, or the sparse vector technique, which goes by the order of the
        formula and names the first `most` it finds.

    Returns
    -------
    SelectResult

    Notes
    -----
    Values that won a ranking are too large, and the k-th and the next are not
    told apart. So the ranking tells names alone, and values get noise of their
    own. Where the counts of all levels are wanted, :func:`dp_table` gives them.

    Correlations are about a noisy mean of the response, with noisy spreads of the
    columns. A column that keeps to a small part of its public bounds ranks lower
    than its correlation would: the report says from what part on. Declare bounds
    that rows fill.

    With ``score="gain"`` [3]_ a fifth of the budget is for coefficients, by which
    what the named columns say is taken off the response before the next is named.
    Steep coefficients make residuals long, and noise with them. The values are
    shares of the response's sum of squares; :meth:`SelectResult.cumulative` adds
    them up.

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
        select_way,
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


@spec_of("select")
def select_way(question: Question) -> Way[SelectResult]:
    """Return the way of the verb's question."""
    formula = question.formula
    check_size(formula)
    left, mark, _ = formula.partition("~")
    return _columns_way(question) if mark and left.strip() else _levels_way(question)


def _levels_way(question: Question) -> Way[SelectResult]:
    both = sides(question.formula, question.codebook)
    tally = levels(both)
    facts = selection_facts(question, LevelScore(tally.cells), _score(question, COUNT))
    private = unbound_cells(both.text, both.codebook, (tally,))
    return _way(question, described_call(both, (tally,)), COUNT, facts, private)


def _columns_way(question: Question) -> Way[SelectResult]:
    both = columns(question.formula, question.codebook)
    kind = _score(question, "correlation", "z", GAIN)
    facts = selection_facts(question, _ranked_by(kind, len(both.terms.names)), kind)
    return _way(question, columns_call(both), kind, facts, box_design(both))


def _way(
    question: Question, call: DescribedCall, score: Any, facts: SelectionFacts, private: Any
) -> Way[SelectResult]:
    return Way(
        question,
        call,
        partial(
            SelectResult,
            score=score,
            asked=facts.max_chosen,
            threshold=facts.threshold,
            share=facts.share,
        ),
        private,
        facts,
        partial(_chosen, facts, question.private),
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


def _score(question: Question, *known: str) -> Any:
    """Return the score that was asked for, the first that is known by default."""
    given = question.words["score"]
    more = "; '~ town' ranks levels by count, 'y ~ .' columns by correlation, z or gain"
    return known[0] if given is None else word("score", given, known, more)


def _ranked_by(kind: Any, size: int) -> Score:
    """Return what columns are ranked by."""
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
    both = two_levels(two_sided(formula, codebook))
    if len(both.terms.names) < FEWEST or both.offset:
        raise FormulaError(
            f"formula {shorten(formula)!r}: name the columns to choose among on the right, two at "
            "least and no offset; write 'y ~ .' or 'y ~ a + b + c'"
        )
    return both


def columns_call(both: TwoSided) -> DescribedCall:
    """Return the public facts of a selection of columns."""
    response = both.response
    table = TableCall(
        ("term",),
        (both.terms.names,),
        measured=response.names[0],
        lower=float(response.lower[0]),
        upper=float(response.upper[0]),
    )
    return DescribedCall(response.formula, Codebook(both.joint.codebook), (table,))


def _chosen(
    facts: SelectionFacts, guarantee: Guarantee, mechanism: object, private: Sequence[Any]
) -> Choice[Any]:
    return choose(mechanism, SELECTION, lambda: auto_selection(facts, guarantee))


def selection_facts(question: Question, score: Score, kind: str) -> SelectionFacts:
    """Return the public facts of a selection; ArgumentError for numbers that contradict it."""
    own = question.words
    k, threshold, most = own["k"], own["threshold"], own["most"]
    values = _share(own["values"], SHARES[kind], MOST_SHARE - score.own_share)
    if threshold is None:
        if most is not None:
            raise ArgumentError(
                f"most={said(most)} goes with threshold=, above which so many are named; write k= "
                "for the number to be named, or threshold= too"
            )
        number = whole("k", 1 if k is None else k, 1, score.size, _candidates(score))
        return SelectionFacts(score, number, None, values, question.adjacency)
    if k is not None:
        raise ArgumentError(
            "k= and threshold= are both given: write k= for the largest k, or threshold= and most= "
            "for those above it"
        )
    write = "; write threshold=100 of rows, 0.1 of a correlation, or 3 with score='z'"
    least = between("threshold", threshold, 0.0, LARGEST[kind], write)
    number = whole(
        "most", min(MOST, score.size) if most is None else most, 1, score.size, _candidates(score)
    )
    return SelectionFacts(score, number, least, values, question.adjacency)


def _candidates(score: Score) -> str:
    return f", as many as the formula has to choose among; it has {score.size:,}"


def _share(values: object, usual: float, most: float) -> float:
    """Return the share of the budget for values; 0 where none are wanted."""
    if isinstance(values, bool):
        return usual if values else 0.0
    return between(
        "values",
        values,
        LEAST_SHARE,
        most,
        ", the share of the budget for values that tell something and leave some for names; or "
        "write True or False",
    )


def levels(both: Sides) -> Tally:
    """Return the one table whose cells are the candidates of a formula."""
    products = {term for terms in both.terms for term in terms}
    text = shorten(both.text)
    if both.groups or not both.described:
        raise FormulaError(
            f"formula {text!r}: levels are named of one variable, or of one product; write "
            "'~ town' or '~ town:job'"
        )
    if len(products) > 1:
        cross = shorten(":".join(code.code for code in both.described))
        raise FormulaError(
            f"formula {text!r} has several terms, and levels of one are named at a time; write "
            f"'~ {cross}' for the combinations, or one dp_select for each"
        )
    return Tally(tuple(map(grouping, both.described)))
