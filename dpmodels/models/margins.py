"""``dp_margins``: private, consistent margins by formula."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from dpmodels.codebook import Codebook
from dpmodels.design.cells import unbound_margins
from dpmodels.formula.tally import Margins, Tally, margins, with_missing
from dpmodels.mechanisms import MARGINS, MarginMechanism, choose_strategy
from dpmodels.mechanisms.choose import auto_margins
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.models.replay import spec_of
from dpmodels.models.sampled_specs import sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.postprocess.residuals import largest
from dpmodels.request import Request
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.margins import MarginsResult
from dpmodels.results.weighted_margins import WeightedMarginsResult


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
    return run_verb("margins", margins_spec, formula, data, shared, mechanism)


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
    return DescribedCall(layout.text, Codebook(layout.codebook), tuple(tables))
