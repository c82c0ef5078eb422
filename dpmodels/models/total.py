"""``dp_total``: private totals by formula."""

from __future__ import annotations

from typing import Unpack

from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.descriptive_specs import descriptive_spec, mean_tally
from dpmodels.models.replay import spec_of
from dpmodels.models.sampled_specs import sampled_spec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.request import Request
from dpmodels.results.groups import TotalResult


@verb
def dp_total(
    formula: str,
    data: object = None,
    *,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> TotalResult:
    """Release the total of a variable, by groups or not.

    Parameters
    ----------
    formula : str
        ``"income ~ sex"``, ``"income ~ sex + region"`` for each combination of
        levels, or ``"~ income"`` for all rows. A comparison or a variable of
        two levels on the left gives numbers of units.
    mechanism : {"auto", "capped", "rounds", "paired", "geometric", "gaussian"} or instance
        Discrete Laplace or discrete Gaussian noise; ``"capped"`` under a
        survey design, and there alone.

    Returns
    -------
    TotalResult

    Notes
    -----
    Under a survey design, ``design=dp.design(weights="w", ...)``, the estimate is the
    Horvitz-Thompson total ``Σ w y`` of the population. The weights are capped at a bound that is
    released first, from 3 % of the budget; the table says how much of the weight was cut off and
    what that moved the total by, and errors include it. Without a design each row has the weight 1.

    Noise is in proportion to the largest of the declared bounds, and to the cap.

    References
    ----------
    .. [1] Horvitz, D. G. and Thompson, D. J. (1952). "A generalization of sampling without
       replacement from a finite universe." JASA 47(260), 663-685.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> design = dp.design(weights="w", bounds=(1, 50), weights_are="design")
    >>> rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500, "w": [2.0, 5.0] * 500}
    >>> fit = dp_total("income ~ sex", rows, codebook=cb, eps=2.0, design=design)
    >>> list(fit.params.index), fit.conf_int().shape
    (['F', 'M'], (2, 2))
    """
    return run_verb("total", total_spec, formula, data, shared, mechanism)


@spec_of("total", gaussian="gaussian", designs=True)
def total_spec(request: Request) -> VerbSpec[TotalResult]:
    """Build the specification of a dp_total call."""
    formula_sides = parse_sides(request.formula, request.codebook)
    number, factors = one_measured(formula_sides, "dp_total")
    if request.codebook.design is not None:
        tally = Tally(factors, number, 1)
        return sampled_spec(request, formula_sides, (tally,), TotalResult, total=True)
    tally = mean_tally(request.adjacency, factors, number)
    return descriptive_spec(request, formula_sides, (tally,), TotalResult)
