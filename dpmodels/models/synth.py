"""``dp_synth``: a private synthetic table by formula, and estimates from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from dpmodels.arguments import integer
from dpmodels.codebook import Codebook
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
from dpmodels.mechanisms import GRAPHS, Graph, choose_strategy
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.graphical.histograms import FineCells
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.postprocess.residuals import cells
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.margins import MarginsResult
from dpmodels.results.synth import SynthResult
from dpmodels.results.synthetic_source import released_columns

MANY = (
    ": rules that combine several tables suppose a release for each, and these would share one; "
    "rows(draw=1) draws another table, and lm() has intervals"
)


@verb
def dp_synth(
    formula: str,
    data: object = None,
    *,
    cuts: int | Mapping[str, Any] = 10,
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
        Which columns are joined, ``"~ a:b + b:c:d"``, two or more in a table. By default the graph
        is chosen from a first release of the tables of all pairs of columns, and the tables of its
        edges are released again, each by half of the budget. Declared products have one release.
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
    read as spread over a cell, which intervals do not count: declare bounds near the rows.

    Missing and unlisted values are a level of their own. Columns of 500 levels at most; the table
    of the columns that a clique of the graph joins has 20,000 cells at most.

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
    numbers = tuple(
        FineCells(i, column.fine, len(column.levels), column.ends, column.sparse)
        for i, column in enumerate(columns)
        if column.fine
    )
    facts = MarginFacts(fine.sizes, layout.terms, request.adjacency, numbers)
    rounds = {} if is_chosen else {"rounds": 1}

    def in_cells(columns: tuple[CutColumn, ...]) -> VerbSpec[SynthResult]:
        tables = tuple(TableCall((c.category.code,), (c.levels,)) for c in columns)
        return VerbSpec(
            request,
            DescribedCall(layout.text, Codebook(layout.codebook), tables),
            partial(SynthResult, columns=columns),
            unbound_margins(fine),
            facts,
            lambda mechanism, private: choose_strategy(
                mechanism, GRAPHS, lambda: ("graph", ""), rounds
            ),
            sizes={"fine": sum(len(column.fine) for column in columns)},
        )

    def adapted(release: Any) -> VerbSpec[SynthResult]:
        return in_cells(released_columns(columns, release))

    return replace(in_cells(columns), adapted=adapted if numbers else None)
