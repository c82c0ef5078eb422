"""``dp_margins`` and ``dp_synth``: private, consistent margins, and models made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from dpmodels.arguments import integer
from dpmodels.design.cells import unbound_margins
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.cut_columns import (
    CutColumn,
    all_pairs,
    check_cells,
    cut_columns,
    plain_cuts,
    structure_terms,
    with_fine_cells,
)
from dpmodels.formula.tally import Margins, Tally, margins, with_missing
from dpmodels.mechanisms import GRAPHS, MARGINS, Graph, MarginMechanism, choose_strategy
from dpmodels.mechanisms.margins import auto_margins
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.models.descriptive_specs import sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.postprocess.residuals import cells, largest
from dpmodels.released import GraphRelease
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.margins import MarginsResult
from dpmodels.results.synth import SynthResult
from dpmodels.results.synthetic_source import released_columns
from dpmodels.results.weighted_margins import WeightedMarginsResult
from dpmodels.verbs import spec_of


@verb
def dp_margins(
    formula: str,
    data: object = None,
    *,
    mechanism: str | MarginMechanism = "auto",
    **shared: Unpack[Shared],
) -> MarginsResult | Any:
    """Release consistent margins of one table from one budget.

    Parameters
    ----------
    formula : str
        One margin per term: ``"~ sex*region + region:drug"`` are those of sex, of
        region, of sex by region, and of region by drug; ``"~ (a + b + c)**2"`` all
        of two variables, ``"~ .**2"`` those of the codebook. Numbers are cut at
        public breaks, ``cut(age, [0, 30, 100])``. A margin of a million cells at
        most, and all of them together.
    protocol
        Here ``"pooled"``, ``"secure_sum"`` or ``"local"``.
    mechanism : {"auto", "residual", "marginals"} or instance
        Discrete Gaussian noise on the components that margins are made of, or
        discrete Laplace noise on those that are in no other and least squares;
        the quieter by default.

    Returns
    -------
    MarginsResult or WeightedMarginsResult

    Notes
    -----
    The budget is divided so that the noise variances of all cells asked for
    have the least sum. Rows with a missing or unlisted level are counted as a
    level of their own in each margin: so all margins agree, and under
    ``"replace"`` add up to the public number of rows. The full table of all
    variables is never made.

    Under a survey design margins are totals of the population: weighted tables under one cap
    (mechanism ``"capped"``), of which least squares makes margins that agree. With ``psu=`` each
    requested margin is a table, without it each that is in no other.

    References
    ----------
    .. [1] Xiao, Y., He, G., Zhang, D. and Kifer, D. (2023). "An Optimal and
       Scalable Matrix Mechanism for Noisy Marginals under Convex Loss
       Functions." NeurIPS.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(sex=["F", "M"], region=["n", "s", "w"], drug=["no", "yes"])
    >>> rows = {"sex": ["F", "M"] * 300, "region": ["n", "s", "w"] * 200, "drug": ["no"] * 600}
    >>> fit = dp_margins("~ sex*region + region:drug", rows, codebook=cb, eps=1.0, delta=1e-6)
    >>> fit.terms
    ('sex', 'region', 'sex:region', 'region:drug')
    >>> fit.table("drug").counts.sizes
    Frozen({'drug': 2})
    """
    return run_verb("margins", margins_spec, **locals())


@spec_of("margins", designs=True)
def margins_spec(request: Request) -> VerbSpec[object]:
    """Build the specification of a dp_margins call."""
    layout = margins(request.formula, request.codebook)
    if request.codebook.design is not None:
        return _weighted_spec(request, layout)
    facts = MarginFacts(layout.sizes, layout.terms, request.adjacency)

    return VerbSpec(
        request,
        margins_call(layout),
        MarginsResult,
        unbound_margins(layout),
        facts,
        lambda mechanism, private: choose_strategy(
            mechanism, MARGINS, partial(auto_margins, facts, request.private)
        ),
    )


def _weighted_spec(request: Request, layout: Margins) -> VerbSpec[object]:
    """Build the specification under a survey design: a table for each margin in no other.

    A table for each margin of sampling units, whose products do not add up over cells.
    """
    design = request.codebook.design
    units = design is not None and design.psu is not None
    terms = tuple(dict.fromkeys(layout.terms)) if units else largest(layout.terms)
    factors = tuple(map(with_missing, layout.factors))
    tallies = tuple(Tally(tuple(factors[i] for i in term), has_missing=units) for term in terms)
    result = partial(WeightedMarginsResult, requested=margins_call(layout).tables)
    return sampled_spec(request, layout, tallies, result)


def margins_call(layout: Margins) -> DescribedCall:
    """Return the public facts of margins: a table each."""
    tables = (
        TableCall(
            tuple(layout.factors[i].code for i in term),
            tuple(layout.factors[i].levels for i in term),
        )
        for term in layout.terms
    )
    return DescribedCall(layout.text, layout.codebook, tuple(tables))


MANY = (
    ": rules that combine several tables suppose a release for each, and these would share one; "
    "rows(draw=1) draws another table, and lm() has intervals"
)


@verb
def dp_synth(
    formula: str,
    data: object = None,
    *,
    cuts: int | Mapping[str, object] = 10,
    structure: str = "auto",
    m: int = 1,
    given: MarginsResult | SynthResult | None = None,
    mechanism: str | Graph = "auto",
    **shared: Unpack[Shared],
) -> SynthResult:
    """Release a model of a table, from which synthetic rows are drawn and estimates computed.

    Parameters
    ----------
    formula : str
        The columns, two or more: ``"~ ."`` for all of the codebook, ``"~ a + b"``, or cut at
        public breaks of its own, ``"~ a + cut(age, [0, 30, 100])"``.
    protocol
        Here ``"pooled"``, ``"secure_sum"`` or ``"local"``.
    cuts : int or mapping
        Cells of numbers and days: about how many, or by column how many or their public ends,
        ``{"age": [0, 30, 60, 100], "income": 8}``; the others have 10. Where ends are not given,
        cells follow from released counts of fine public cells.
    structure : str, default "auto"
        Which columns are joined, ``"~ a:b + b:c:d"``, two or more in a table. By default the tables
        of all pairs of columns are released first; pairs that a model of those joined so far misses
        are joined, and their tables released again, each by half of the budget. Declared products
        have one release.
    m : int, default 1
        Only 1: rules that combine several synthetic tables suppose a release for each.
    given : MarginsResult or SynthResult, optional
        An earlier result instead of `data` and a budget: a synthetic table of its tables, in their
        cells and levels, with ``"~ ."`` for its columns. No row is read, nothing is charged.
        `structure` then names products that were released.
    mechanism : {"auto", "graph"} or instance
        Discrete Gaussian noise on the components that the tables are made of.

    Returns
    -------
    SynthResult
        ``rows()`` draws synthetic rows, ``rows(public=)`` near public ones; ``lm()``, ``glm()``,
        ``table()``, ``mean()`` and ``quantile()`` have valid intervals, which the rows alone do not
        give.

    Notes
    -----
    Where numbers have more values than cells, counts of their fine cells are released first, by 5 %
    of the budget times the square root of how many such columns there are, 20 % at most. They say
    how numbers lie within their cells; what is beyond the range in which they are clear of the
    noise is estimated from the tail before it, with its error. What follows the release costs
    nothing: the model, rows of it and estimates.

    Fine cells are about a thirtieth of the declared range wide, or a third of that where there are
    400 rows for each noise standard deviation of a count. Clusters of rows that are narrower are
    read as spread over a cell, which intervals do not count: declare bounds near the rows. Numbers
    are clipped to their bounds, and estimates are of the clipped numbers. Where counts show that
    noise may hide a heavy tail or many rows, estimates say that they assume otherwise.

    Missing and unlisted values are a level of their own; the model has none where they are not
    detected above the noise. Columns of 500 levels at most. The columns that a declared structure
    joins have a table of 20,000 cells at most; those that are chosen, tables of 50,000 cells beside
    those for missing values that are not detected.

    References
    ----------
    .. [1] McKenna, R., Miklau, G. and Sheldon, D. (2021). "Winning the NIST Contest: A Scalable
       and General Approach to Differentially Private Synthetic Data." Journal of Privacy and
       Confidentiality.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(sex=["F", "M"], age=(0, 100), drug=["no", "yes"])
    >>> rows = {"sex": ["F", "M"] * 2000, "age": [25, 61, 43, 38] * 1000, "drug": ["no"] * 4000}
    >>> syn = dp_synth("~ .", rows, codebook=cb, eps=2.0, delta=1e-6, cuts=5)
    >>> syn.rows(100).shape, list(syn.mean("age ~ sex").params.index)
    ((100, 3), ['F', 'M'])
    """
    require_structure(structure)
    if given is not None:
        changed = {"cuts": cuts != 10, "m": m != 1, "mechanism": mechanism != "auto"}
        stated = {"data": data is not None, **{n: v is not None for n, v in shared.items()}}
        return _of_release(formula, given, structure, {**stated, **changed})
    cells = plain_cuts(cuts) if isinstance(cuts, Mapping) else cuts
    options = {"cuts": cells, "structure": structure, "m": m}
    return run_verb("synth", synth_spec, formula, data, shared, mechanism, **options)


def _of_release(
    formula: str, earlier: MarginsResult | SynthResult, structure: str, stated: Mapping[str, bool]
) -> SynthResult:
    """Return a synthetic table of an earlier result; `stated` are other arguments."""
    if not isinstance(earlier, MarginsResult | SynthResult):
        raise ArgumentError(
            f"given= of type {type(earlier).__name__}: expected a result of dp_margins or dp_synth"
        )
    parameter = next((name for name, is_stated in stated.items() if is_stated), None)
    if parameter is not None:
        raise ArgumentError(
            f"{parameter}= is set beside given=, whose release has the rows, cells and guarantee: "
            "leave it out, or leave out given= for a new release"
        )
    if "".join(formula.split()) != "~.":
        raise FormulaError(
            f"formula {shorten(formula)!r} beside given=: expected '~ .', all columns released"
        )
    return earlier._derive(SynthResult, "synth", structure=structure)


def require_structure(structure: object) -> None:
    """Refuse a structure that is not a text."""
    if not isinstance(structure, str):
        raise ArgumentError(
            f"structure={quoted(structure)}: expected 'auto' or products of columns, '~ a:b + b:c'"
        )


@spec_of("synth")
def synth_spec(request: Request) -> VerbSpec[SynthResult]:
    """Build the specification of a dp_synth call."""
    structure = request.options["structure"]
    layout, columns = cut_columns(request.formula, request.codebook, request.options["cuts"])
    require_structure(structure)
    integer("m", request.options["m"], 1, 1, MANY)
    is_chosen = structure == "auto"
    terms = all_pairs(layout) if is_chosen else structure_terms(structure, layout)
    layout = replace(layout, terms=terms)
    if not is_chosen:
        structure_of(terms, layout.sizes)
        check_cells(len(terms), sum(cells(term, layout.sizes) for term in terms))
    columns = with_fine_cells(columns, layout.terms)
    fine = replace(layout, factors=tuple(column.counted for column in columns))
    numbers = tuple(column.fine for column in columns if column.fine)
    facts = MarginFacts(fine.sizes, layout.terms, request.adjacency, numbers)
    rounds = {} if is_chosen else {"rounds": 1}

    def in_cells(columns: tuple[CutColumn, ...]) -> VerbSpec[SynthResult]:
        tables = tuple(TableCall((c.category.code,), (c.levels,)) for c in columns)
        return VerbSpec(
            request,
            DescribedCall(layout.text, layout.codebook, tables),
            partial(SynthResult, columns=columns),
            unbound_margins(fine),
            facts,
            lambda mechanism, private: choose_strategy(
                mechanism, GRAPHS, lambda: ("graph", ""), rounds
            ),
            sizes={"fine": sum(len(c.fine.edges) for c in columns if c.fine)},
        )

    def adapted(release: GraphRelease) -> VerbSpec[SynthResult]:
        return in_cells(released_columns(columns, release))

    return replace(in_cells(columns), adapted=adapted if numbers else None)
