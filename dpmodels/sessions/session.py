"""``session``: settings shared by all calls on a table, and verbs that spend its budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from os.path import exists
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, SupportsIndex

from dpmodels import errors, privacy
from dpmodels.arguments import checked_keywords, checked_methods, integer
from dpmodels.codebook import Codebook
from dpmodels.column_roles import SurveyDesign
from dpmodels.formula.sides import subset as condition
from dpmodels.frames import open_rows, require
from dpmodels.frames.delimited import CsvMode
from dpmodels.models.drafting import Stages, draft_calls, one_table, released, unknown_variables
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, Spent
from dpmodels.privacy.register import convergence_notes, refuse_other_neighbours
from dpmodels.report import Fact, Report, Row, Section, Summary, count, signif
from dpmodels.request import Request, designed, related
from dpmodels.resolve_codebook import PrivateCodebook, Resolved, as_private, codebook_of_call
from dpmodels.results.bounds import BoundsResult
from dpmodels.results.plan import PlanResult
from dpmodels.sessions.call import Call, Terms, VerbMethods
from dpmodels.sessions.shares import Left, budget_of, fraction, left_in, planned, whole_of
from dpmodels.sites import Parties, SiteProtocol, gathered, parties, together
from dpmodels.typing import AnyPath, Option
from dpmodels.variables import Boolean

if TYPE_CHECKING:
    import pandas as pd


# Of the session's delta, where the call sets none: a choice.
DELTA_SHARE = 0.1


_MOST_PARTS: Final = 1_000_000
_SHOWN: Final = 20


@checked_methods
class Session(VerbMethods):
    """A table with its codebook, budget, neighbours, persons and ledger.

    Every verb is a method, ``session.lm("y ~ x", eps=0.2)`` for :func:`dp_lm`, with the verb's own
    options. Each is charged to the session's ledger before a row is read.

    Parameters
    ----------
    data : frame, mapping, path or list of frames
        As for :func:`dp_pca`: **the whole table**, of which later calls take rows with
        ``subset="age >= 25"``. An iterator is refused, as it can be read once.
    codebook : Codebook or "private"
        Public bounds and levels of the variables; ``"private"``: see :meth:`draft_codebook`.
    sites, protocol : mapping and str, optional
        Instead of ``data``: the rows of each site and who sees what, as for :func:`dp_pca`.
    budget : Guarantee, optional
        What all calls together satisfy: ``dp.ApproxDP(2, 1e-6)``, ``dp.ZCDP(0.1)``.
    eps, delta : float
        Instead of ``budget``.
    person : str or False, optional
        The column that identifies persons, who are protected with all rows; by default that of the
        codebook. False where the rows are nobody's.
    rows : int or "mean", optional
        How many rows of a person count, or all, each person with the weight of one; without
        ``person`` any so many rows are protected together.
    subset : str, optional
        A condition on the rows of all calls, such as ``"age >= 25"``.
    design : SurveyDesign, optional
        How the rows were sampled, see ``dp.design``; by default that of the codebook.
    csv : {"records", "lines"}, optional
        What a row of a CSV file is, as for :func:`dp_pca`.
    ledger : Ledger or path, optional
        A ledger, or the path of a ledger file, opened or created; by default one in memory.
    adjacency : {"replace", "add-remove"}
        Neighbours differ by a change, and numbers are public, or by one more or fewer. By default
        those of an existing ledger, with persons and rows, else ``"replace"``.
    pure : float, optional
        With a delta: eps reserved for releases without Gaussian noise, whose eps add up. By default
        a new ledger keeps what such releases take, in steps of 1/32 of eps.
    share : float or str, optional
        What a call without a budget takes of what is left, such as ``"1/5"``; by default it is an
        error to leave it out.

    Raises
    ------
    BudgetError, ArgumentError, CodebookError, FrameError
        If the arguments are invalid, or the data cannot be opened. No row is read.
    LedgerError
        If the ledger has another budget or other neighbours.

    Notes
    -----
    *Filtering.* ``dp.session(df[df.area == 4])`` makes the number of rows in area 4 public, as
    under ``"replace"`` the number of rows is, and nobody can see that it was filtered. A subset's
    size is private; so give the table whole and write ``subset="area == 4"``.

    *Budgets.* A call sets ``eps=0.2``, with the session's delta unless it sets another (as
    ``levels`` must, which spends delta), or ``budget=``, or a share of what is left: ``eps="1/5"``,
    ``share=0.2``. After ``split(5)`` the next five calls without a budget take 1/5, 1/4, ..., all
    of what is left then: equal parts that fit, and spend it. A share is the largest budget at which
    the call's noise takes that part of what the ledger counts: eps, or rho, or with a delta the
    ``mu**2`` of Gaussian noise. What is left depends on earlier calls alone, not on their answers.

    *Noise.* With a delta, the eps of releases without Gaussian noise and the ``mu**2`` of Gaussian
    ones are added up separately, and ``mechanism="auto"`` takes the noise that has the higher
    accuracy for the same part of the session's budget. What calls cost does not depend on their
    order. `left` is what one more call may spend.

    *Copies.* A session is not copied or pickled; a fork of it cannot spend from memory, and spends
    from the same file.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), wage=(0, 80), sex=["F", "M"])
    >>> rows = {"age": [20, 40, 60] * 900, "wage": [10, 30, 20] * 900, "sex": ["F", "M"] * 1350}
    >>> study = dp.session(rows, cb, eps=2.0, delta=1e-6)
    >>> ages = study.mean("age ~ sex", eps=0.5)
    >>> study.split(2)
    >>> fit, axes = study.lm("wage ~ age + sex"), study.pca("~ age + wage")
    >>> study.spent.describe(), len(study.register())
    ('eps = 2, delta = 1e-06', 3)
    """

    __slots__ = ("__weakref__", "_ledger", "_parts", "_share", "_taking_parts", "_terms")
    _ledger: Ledger
    _parts: int
    _share: Fraction | None
    _terms: Terms

    @errors.entry_point
    @checked_keywords("dp.session")
    def __init__(
        self,
        data: object = None,
        codebook: Resolved = None,
        *,
        sites: Mapping[str, object] | None = None,
        protocol: str | SiteProtocol | None = None,
        budget: Guarantee | None = None,
        eps: float | None = None,
        delta: float = 0.0,
        person: str | Literal[False] | None = None,
        rows: int | Literal["mean"] | None = None,
        subset: str | None = None,
        design: SurveyDesign | None = None,
        csv: CsvMode | None = None,
        ledger: Ledger | AnyPath | None = None,
        adjacency: AdjacencyName | Adjacency | None = None,
        pure: float | None = None,
        share: float | str | None = None,
    ) -> None:
        types = as_private(codebook)
        book = codebook_of_call(codebook, data, sites, "~ .") if types is None else types.declared
        relation = related(book := designed(book, design), adjacency, person, rows)
        default_neighbours = (adjacency, person, rows, book.unit) == (None,) * 4
        subset_condition = condition(subset, book)
        columns = dict.fromkeys(getattr(subset_condition, "codebook", ()))
        columns |= dict.fromkeys(filter(None, (relation.person,)))
        table = _opened(gathered(data, sites, protocol, csv), tuple(columns))
        has_budget = eps is not None or budget is not None or ledger is None
        guarantee = privacy.resolve_budget(eps, delta, budget) if has_budget else None
        self._parts, self._share = 0, None if share is None else fraction("share", share)
        self._taking_parts, self._fits = RLock(), []
        stated = None if default_neighbours else relation
        self._ledger = _opened_ledger(ledger, guarantee, stated, pure)
        neighbours = self._ledger.adjacency if default_neighbours else relation
        self._terms = Terms(table, book, neighbours, subset)

    @property
    def ledger(self) -> Ledger:
        """What all calls are charged to."""
        return self._ledger

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None where it is private, or not known before they are read.

        With a subset it is private how many of them count.
        """
        if not self._terms.adjacency.n_public:
            return None
        return together(open_rows(rows).nrows for rows in self._terms.parties.data)

    @property
    def codebook(self) -> Codebook:
        """Public bounds and levels, the narrower ones once they were found."""
        return self._terms.codebook

    @property
    def spent(self) -> Spent:
        """What all charges of the ledger come to."""
        return self._ledger.spent

    @property
    def left(self) -> Left:
        """The largest budget of one more call: with Gaussian noise, and with other noise."""
        return left_in(self._ledger)

    def register(self) -> pd.DataFrame:
        """Return the charges of the ledger, one per row, with the outcome of each."""
        return self._ledger.register()

    def split(self, parts: int) -> None:
        """Let the next calls without a budget take equal parts of what is left.

        Parameters
        ----------
        parts : int
            How many; the first takes 1/parts of what is left, the last all that is. One that is
            refused takes none.
        """
        self._parts = integer("parts", parts, 1, _MOST_PARTS)

    def plan(self, calls: Iterable[Call | tuple[Any, ...]], *, n: int | None = None) -> PlanResult:
        """Price calls before any of them runs: nothing is charged, and no row is read.

        Persons are counted where their number is public and affects the mechanism.

        Parameters
        ----------
        calls : iterable
            Each ``session.call.lm("y ~ x", eps=0.2)`` or ``("lm", "y ~ x", dict(eps=0.2))``. A
            share is one of what those before leave.
        n : int, optional
            Number of rows, for the expected share of estimates that each call identifies; the rows
            are assumed as for :func:`dp.power`.

        Returns
        -------
        PlanResult
            Mechanism, noise and price of each, totals by the ledger's rule, and what all come to
            if they are charged as one. Says which do not fit.

        Raises
        ------
        FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
            Those of the call; nothing is made.
        """
        if isinstance(calls, str | Call) or not isinstance(calls, Iterable):
            raise errors.ArgumentError(
                f"calls of type {type(calls).__name__}: expected a list of them, "
                '[("lm", "y ~ x", dict(eps=0.2)), session.call.pca("~ .", eps=0.3)]'
            )
        requests = [self.call.read(call) for call in calls]
        n_rows = None if n is None else integer("n", n, 1, 10**9)
        return planned(requests, self._terms, self._ledger, self._parts, self._share, n_rows)

    def _made(self, call: Call) -> object:
        if not call.silent or self._parts == 0:
            budget = budget_of(call, self._terms, self._ledger, self._share)
            return self._terms.make(call, budget, self._ledger)
        # A part depends on what is left, so calls that take parts run one after another.
        with self._taking_parts:
            if self._parts == 0:
                return self._made(call)
            budget = budget_of(call, self._terms, self._ledger, Fraction(1, self._parts))
            n_charges = self._ledger.charges
            try:
                return self._terms.make(call, budget, self._ledger)
            finally:
                self._parts -= self._ledger.charges > n_charges

    def tighten(self, formula: str, **options: Option) -> BoundsResult:
        """Find narrower bounds, and use them from here on.

        Parameters
        ----------
        formula : str
            The variables, as for :func:`dp_bounds`.
        **options
            Those of :meth:`bounds`.

        Returns
        -------
        BoundsResult
            What was found; its codebook, now public, replaces declarations of the same variables.
        """
        result: BoundsResult = self.bounds(formula, **options)
        self.declare(result.codebook)
        return result

    def draft_codebook(
        self,
        formula: str,
        codebook: PrivateCodebook | str = "private",
        *,
        eps: float | None = None,
        delta: float | None = None,
        budget: Guarantee | None = None,
    ) -> Codebook:
        """Release bounds and levels of undeclared variables, and use them from here on.

        Parameters
        ----------
        formula : str
        codebook : "private" or PrivateCodebook
            What is public, see :func:`dp.private_codebook`.
        eps, delta, budget
            Of the whole search; delta is a tenth of the session's by default.
        """
        private, allowed = as_private(codebook), whole_of(self._ledger)
        if private is None:
            raise errors.CodebookError(
                f'codebook= is of type {type(codebook).__name__}: expected "private" or '
                'dp.private_codebook(age="numeric", ...)'
            )
        if delta is None:
            spends = budget is None and isinstance(allowed, privacy.ApproxDP)
            delta = getattr(allowed, "delta", 0.0) * DELTA_SHARE * spends
        total, terms = privacy.resolve_budget(eps, delta, budget), self._terms
        book = terms.codebook | private.declared
        request = Request("bounds", formula, book, total, terms.adjacency, {}, terms.subset)
        holders = one_table(terms.parties)
        unknown = unknown_variables(request, private, holders)
        declared = book | dict.fromkeys(unknown.logical, Boolean())
        part = len(unknown.bounds) / max(len(unknown.bounds) + len(unknown.levels), 1)
        parts = [total, total]
        if 0 < part < 1 and isinstance(total, privacy.ApproxDP):
            divided = privacy.split(total.eps, (part, 1 - part))
            parts = [privacy.ApproxDP(eps_part, total.delta / 2) for eps_part in divided]
        stages = Stages(parts[0] if part > 0 else None, parts[1] if part < 1 else None, total)
        calls = draft_calls(replace(request, codebook=declared), private, unknown, stages)
        book, results = released(calls, declared, private, holders, self._ledger)
        self._fits.extend(results)
        self.declare(book)
        return self.codebook

    def declare(self, codebook: Mapping[str, object]) -> None:
        """Use further declarations from here on, in the place of those of the same name.

        Parameters
        ----------
        codebook : Codebook or mapping
            Public facts: from outside, or the ``codebook`` of a result that found bounds or levels.

        Raises
        ------
        CodebookError
            If a declaration cannot be used; then all are rejected.
        """
        if not isinstance(codebook, Mapping):
            raise errors.CodebookError(
                f"declarations of type {type(codebook).__name__}: expected a codebook, or a "
                'mapping such as {"age": (0, 100)}'
            )
        merged = self._terms.codebook | codebook
        if merged.person not in (self._terms.codebook.person, self._terms.adjacency.person):
            raise errors.CodebookError(
                f"the declarations name persons, person={merged.person!r}, and this session "
                f"protects {self._terms.adjacency.unit}: open another one, "
                f"dp.session(..., codebook, person={merged.person!r})"
            )
        self._terms = replace(self._terms, codebook=merged)

    def summary(self, formula: str | None = None, **options: object) -> Summary:
        """Return the printed report of the session: guarantee, calls and what is left.

        Raises
        ------
        ArgumentError
            If anything is given: ``table_one(formula)`` is :func:`dp_summary` of the table.
        """
        if formula is not None or options:
            raise errors.ArgumentError(
                "session.summary() reports the session and takes no formula; the table of "
                "descriptive statistics is session.table_one(formula, ...)"
            )
        return Summary(self._report())

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _report(self) -> Report:
        ledger, terms, entries = self._ledger, self._terms, self._ledger.entries
        n_variables = len(terms.codebook)
        facts: tuple[Fact, ...] = (
            ("Guarantee", ledger.guarantee.describe()),
            ("Neighbours", terms.adjacency.describe()),
            ("Spent", ledger.describe().split(";")[0]),
            ("Codebook", f"{count(n_variables)} variable{'s' * (n_variables != 1)}"),
            ("Left", self.left.describe()),
            ("Ledger", ledger.place or "in memory"),
        )
        optional_facts = (("Person", terms.adjacency.person), ("Subset", terms.subset))
        facts += tuple((name, value) for name, value in optional_facts if value is not None)
        rows = tuple(
            Row(f"{entry.number} {entry.label}", (signif(entry.spent_after.amount, 3),))
            for entry in entries[-_SHOWN:]
        )
        sections = (Section("Calls", (f"total {ledger.spent.unit}",), rows),) if rows else ()
        n_earlier = len(entries) - len(rows)
        notes = (f"{count(n_earlier)} earlier calls: see register().",) if n_earlier else ()
        notes = (*notes, *convergence_notes(ledger.register()["mechanism"]))
        return Report("Session", facts, sections, notes)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise errors.PrivacyError(
            "a session holds its rows and its budget and cannot be copied or pickled: open "
            "another one with the same ledger's file, dp.session(..., ledger='study.ledger')"
        )


session = Session


def _opened(data: object, columns: tuple[str, ...]) -> Parties:
    sites = parties(data)
    for name, rows in zip(sites.names, sites.data, strict=True):
        site_label = f"site {name!r}: " if name else ""
        if isinstance(rows, Iterator):
            raise errors.FrameError(
                f"{site_label}each call of a session reads the data, but an iterator of tables can "
                "be read only once: write the tables to a Parquet file and give its path, or give "
                "a list of them"
            )
        try:
            require(open_rows(rows), columns)
        except errors.FrameError as error:
            raise errors.FrameError(f"{site_label}{error}") from None
    return sites


def _opened_ledger(
    source: Ledger | AnyPath | None,
    budget: Guarantee | None,
    relation: Adjacency | None,
    pure: float | None,
) -> Ledger:
    """Return the ledger of a session; `relation` holds its neighbours, None if not set."""
    if isinstance(source, Ledger):
        if budget is not None and budget != source.guarantee:
            raise errors.BudgetError(
                f"the ledger has the budget {source.guarantee.describe()}, and the session states "
                f"{budget.describe()}: leave out eps, delta and budget"
            )
        if pure is not None:
            raise errors.BudgetError(
                "pure= is a term of the ledger: write dp.Ledger(..., pure=...)"
            )
        whole_of(source)
        refuse_other_neighbours(source.adjacency, relation or source.adjacency)
        return source
    rule = "steps" if isinstance(budget, privacy.ApproxDP) else None
    if source is None:
        return Ledger(budget=budget, adjacency=relation or "replace", pure=pure or 0.0, rule=rule)
    if not isinstance(source, str | PathLike):
        raise errors.ArgumentError(
            f"ledger of type {type(source).__name__}: expected a dp.Ledger, the path of a file, or "
            "none for one in memory"
        )
    rule = None if exists(source) else rule
    return Ledger.open(source, budget=budget, adjacency=relation, pure=pure, rule=rule, new=True)
