"""``dp_survfit``: private survival curves on a public grid of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

from dpmodels.design.cells import PrivateCells, unbound_cells
from dpmodels.errors import ArgumentError
from dpmodels.formula.survival import Survival, even_breaks, parse_survival
from dpmodels.mechanisms import COUNTS, ORDERED, choose_strategy
from dpmodels.mechanisms.choose import Choice, auto_counts, auto_ordered
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.models.descriptive_specs import descriptive_call
from dpmodels.models.replay import spec_of
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Guarantee
from dpmodels.request import Request
from dpmodels.results.survfit import SurvfitResult

# Choices: intervals where the number of rows is not public, the fewest and the most where it is,
# and in roots of rows in noise sds: fewer widen the bounds for orders, more add noise.
INTERVALS, FEWEST, MOST, FINENESS = 20, 4, 400, 2.0
# Those with a known noise distribution in all sums of cells.
CURVES: Final = {name: kind for name, kind in ORDERED.items() if name != "partition"}


@verb
def dp_survfit(
    formula: str,
    data: object = None,
    *,
    breaks: int | Iterable[float] | None = None,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> SurvfitResult:
    """Release survival curves, by groups or not: Kaplan and Meier's on a public grid of time.

    Parameters
    ----------
    formula : str
        ``"Surv(time, event) ~ group"``, or ``"~ 1"`` on the right for one curve. The time is a
        declared number, not a function of one, from 0 on: until the event, or until censoring. The
        event is a variable of two levels, of which the second is the event, a number from 0 to 1,
        or a comparison, ``status == "dead"``. Several groups give a curve for each combination of
        their levels.
    breaks : int or sequence of float, optional
        A number of equal intervals over the declared range of the time, 2 to 1,000, or
        the ends of the intervals, rising, to which the declared ends are added
        where they are missing: every row is followed to the end of the range. By default their
        number grows with the root of the number of rows a group and of the budget, where the
        number of rows is public: 38 at 1,000 rows and ``eps=1``, 119 at 10,000, at most 400; else
        20. They end at whole numbers of the time where the declared ends are whole.
    mechanism : str or instance
        ``"flat"``: noise in each count by itself, the quieter of ``"geometric"``,
        discrete Laplace, and ``"gaussian"``, discrete Gaussian. ``"tree"``,
        ``"wavelet"`` and ``"factorisation"``: noisy sums over runs of intervals, so that
        rows at risk have little noise. By default flat for up to 40 intervals; for
        more the quietest, as in :func:`dp_hist`.

    Returns
    -------
    SurvfitResult

    Notes
    -----
    A row is counted once: in its group, in the interval of its time, and by whether it had the
    event. Everything else is computed from these counts, free of charge, also Cox's regression on
    the groups: ``fit.coxph()``. A grid of the true event times would reveal rows and is not
    offered.

    Rows censored in an interval of several values are taken to be at risk in half of it (the
    actuarial convention). Intervals hold for any order of times within it: their lower ends are for
    all censored at its start, the upper ends for all at its end. For whole-number times with one
    interval each the curve is exactly Kaplan and Meier's. Times above the declared range are
    censored at its end, and counted separately with those censored there; times below it are
    clipped to its beginning. Whole numbers above the range are clipped to its end: events there may
    have come later and do not count, so that the curve stops before it. A curve ends where fewer
    rows are at risk than five standard deviations of the noise in their number: fewer, wider
    intervals extend it.

    References
    ----------
    .. [1] Kaplan, E. L. and Meier, P. (1958). "Nonparametric estimation from
       incomplete observations." JASA.
    .. [2] Gondara, L. and Wang, K. (2020). "Differentially private survival function
       estimation." MLHC.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(days=dp.Integer(0, 99), died=["no", "yes"], arm=["a", "b"])
    >>> rows = {"days": list(range(100)) * 40, "died": ["no", "yes"] * 2_000, "arm": ["a"] * 4_000}
    >>> fit = dp_survfit("Surv(days, died) ~ 1", rows, codebook=cb, eps=1.0, breaks=10)
    >>> fit.times[:4].tolist()
    [9.0, 19.0, 29.0, 39.0]
    """
    return run_verb("survfit", survfit_spec, formula, data, shared, mechanism, breaks=breaks)


@spec_of("survfit", gaussian="gaussian")
def survfit_spec(request: Request) -> VerbSpec[SurvfitResult]:
    """Build the specification of a dp_survfit call."""
    curve, breaks = parse_survival(request.formula, request.codebook), request.options["breaks"]
    tally, edges = curve.tally(even_breaks(curve.time, INTERVALS) if breaks is None else breaks)
    cells = tally.shape[-1]
    shape = (tally.cells // cells, cells)
    facts = CountFacts(1, tally.size, False, request.adjacency, shape)

    inner = tuple(min(end, curve.grid.upper) for end in edges[1:])
    return VerbSpec(
        request,
        descriptive_call(curve.sides, (tally,)),
        partial(SurvfitResult, ends=inner),
        unbound_cells(curve.text, curve.codebook, (tally,)),
        facts,
        partial(_chosen, facts, request.private),
        sized=partial(_sized, request, curve) if breaks is None else None,
    )


def _sized(request: Request, curve: Survival, n_rows: int) -> VerbSpec[SurvfitResult]:
    """Return the specification with as many intervals as suit a public number of rows."""
    flat = CountFacts(1, 1, False, request.adjacency)
    groups = math.prod(len(group.levels) for group in curve.groups)
    noise_sd = COUNTS[auto_counts(flat, request.private)[0]]().plan(flat, request.private).noise_sd
    number = FINENESS * math.sqrt(n_rows / groups / noise_sd)
    breaks = even_breaks(curve.time, round(min(max(number, FEWEST), MOST)))
    return survfit_spec(replace(request, options={**request.options, "breaks": breaks}))


def _chosen(
    facts: CountFacts, guarantee: Guarantee, mechanism: object, private: Sequence[PrivateCells]
) -> Choice[Any]:
    """Choose among mechanisms for ordered cells with a known noise distribution."""
    flat, _ = auto_counts(facts, guarantee)
    table = {"flat": COUNTS[flat], **COUNTS, **CURVES}
    choice = choose_strategy(mechanism, table, partial(auto_ordered, facts, guarantee))
    if not isinstance(choice.strategy, tuple(table.values())):
        raise ArgumentError(
            f"mechanism= is of type {type(choice.strategy).__name__}, whose noise in sums of "
            f"counts has no known distribution; write one of {', '.join(map(repr, table))}"
        )
    return choice
