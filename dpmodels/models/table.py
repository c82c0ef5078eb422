"""``dp_table``: private counts by formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dpmodels.declared import Declared, declared
from dpmodels.entry_point import entry_point
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.sides import Sides, grouping, sides
from dpmodels.formula.tally import Tally
from dpmodels.frames.delimited import CsvMode
from dpmodels.mechanisms.counts import RESPONSES, CountMechanism, ResponseMechanism
from dpmodels.models.crossing import Way, cross
from dpmodels.models.describing import described_way
from dpmodels.models.states import asked_states, refuse_alone, states_way
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, Pufferfish
from dpmodels.question import Question, asked
from dpmodels.released import AnswersRelease
from dpmodels.results.call import DescribedCall
from dpmodels.results.survey import SurveyResult
from dpmodels.results.table import TableResult
from dpmodels.sites import PROTOCOLS, SiteProtocol, gathered


@entry_point
def dp_table(
    formula: str,
    data: object = None,
    *,
    sites: Mapping[str, object] | None = None,
    protocol: str | SiteProtocol | None = None,
    codebook: Declared = None,
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | Pufferfish | None = None,
    mechanism: str | CountMechanism | ResponseMechanism = "auto",
    adjacency: AdjacencyName | Adjacency | None = None,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    time: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
) -> TableResult | Any:
    """Release a table of counts, with margins and a test of independence.

    Parameters
    ----------
    formula : str
        ``"~ sex + region"``: a count for each combination of declared levels.
        Numbers are cut at public breaks, ``"~ sex + cut(age, [0, 30, 60, 100])"``.
        ``"region ~ sex"`` and ``"~ region | sex"`` are the table ``"~ sex + region"``,
        and so are ``"~ sex:region"`` and ``"~ sex*region"``. For margins, ``"~ a:b + b:c"``,
        write :func:`dp_margins`.
    data, sites, protocol
        The rows, or those of each site and who sees what, as for :func:`dp_pca`.
    codebook, eps, delta, budget
        As for :func:`dp_pca`.
    mechanism : {"auto", "geometric", "gaussian", "randomized_response"} or instance
        Discrete Laplace or discrete Gaussian noise; the quieter by default.
        Randomized response has every row answer for itself, with noise as if
        nobody could be trusted with the table; under ``"replace"`` alone.
    adjacency, person, rows, subset, csv, ledger
        As for :func:`dp_pca`.
    time : str, optional
        With ``budget=dp.Pufferfish(eps=, model=)`` and ``person=``: the variable that
        tells when each person was in which state, whose public ends are those of the
        series. See the notes.

    Returns
    -------
    TableResult, or SurveyResult where rows answered for themselves, or StatesResult of a
    Pufferfish guarantee

    Raises
    ------
    FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
        Before a row is read and before anything is charged.
    LedgerError
        If the ledger refuses; nothing is charged.

    Notes
    -----
    The number of incomplete rows is released along, at no further cost: under
    ``"replace"`` all counts are then made to add up to the public number of
    rows, which takes noise off them.

    *States that depend on each other.* Where a person has a row a minute, all of
    them are that person's, and what is hidden of them may be the whole series
    (``person="id"``) or each minute's state, which takes far less noise and an
    assumption on how states follow each other: ``budget=dp.Pufferfish(eps=1.0,
    model=dp.markov_chain(...))`` with ``time=`` and ``person=``. It is not
    differential privacy. Levels of the formula's one variable are the states; of
    several rows of a person at one time the first complete one counts, a time
    without a row or outside the declared ends counts as incomplete, and which are
    is taken to be independent of the states. The number of persons is public.

    References
    ----------
    .. [1] Ghosh, A., Roughgarden, T. and Sundararajan, M. (2009). "Universally
       utility-maximizing privacy mechanisms." STOC.
    .. [2] Kifer, D. and Rogers, R. (2017). "A new class of private chi-square
       hypothesis tests." AISTATS.
    .. [3] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish privacy
       mechanisms for correlated data." SIGMOD.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(sex=["F", "M"], region=["n", "s", "w"])
    >>> rows = {"sex": ["F", "M"] * 300, "region": ["n", "s", "w"] * 200}
    >>> fit = dp_table("~ sex + region", rows, codebook=cb, eps=1.0)
    >>> fit.counts.sizes, fit.margins("sex").sizes
    (Frozen({'sex': 2, 'region': 3}), Frozen({'sex': 2}))

    >>> cb = dp.codebook(activity=["rest", "walk"], minute=dp.Integer(1, 500))
    >>> own = {"activity": ["rest"] * 400 + ["walk"] * 100, "minute": range(1, 501)}
    >>> rows = {**own, "id": [1] * 500}
    >>> chain = dp.markov_chain(["rest", "walk"], stay=(0.8, 0.9))
    >>> budget = dp.Pufferfish(eps=1.0, model=chain)
    >>> fit = dp_table("~ activity", rows, codebook=cb, time="minute", person="id", budget=budget)
    >>> fit.scales["scale"].round(1).tolist()
    [2.0, 67.3, 1000.0]
    """
    held = gathered(data, sites, protocol, PROTOCOLS, csv)
    book = declared(codebook, data, sites, formula)
    words: dict[str, Any] = {"person": person, "rows": rows, "subset": subset}
    if isinstance(budget, Pufferfish):
        more = {"eps": eps, "delta": delta or None, "adjacency": adjacency, "sites": sites}
        own = asked_states(formula, book, budget, time, **words, **more)
        return cross(states_way(own), held, mechanism, ledger)
    refuse_alone(time)
    question = asked("table", formula, book, eps, delta, budget, adjacency, **words)
    return cross(table_way(question), held, mechanism, ledger)


def table_way(question: Question) -> Way[TableResult | SurveyResult]:
    """Return the way of the verb's question."""
    both = sides(question.formula, question.codebook)
    _require_full_cross(both)
    return described_way(question, both, (counted(both),), _result, RESPONSES)


def _result(call: DescribedCall, release: Any) -> TableResult | SurveyResult:
    kind = SurveyResult if isinstance(release, AnswersRelease) else TableResult
    return kind(call, release)


def _require_full_cross(both: Sides) -> None:
    """Refuse some products without that of all: they mean margins, and a table is of one cross."""
    for terms in both.terms:
        every = list(dict.fromkeys(code for term in terms for code in term))
        longest = max(map(len, terms), default=0)
        if 1 < longest < len(every):
            text, cross = shorten(both.text), shorten("*".join(every))
            raise FormulaError(
                f"formula {text!r} asks for margins, and dp_table counts one table of all its "
                f"variables; write dp_margins({text!r}, ...) for margins that agree, or "
                f"'~ {cross}' for the full cross"
            )


def counted(both: Sides) -> Tally:
    """Return the table of a formula, groups first."""
    if not both.described:
        raise FormulaError(
            f"formula {shorten(both.text)!r} names no variable to count; write '~ a + b'"
        )
    return Tally((*both.groups, *map(grouping, both.described)))
