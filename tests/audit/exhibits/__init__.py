"""Mechanisms that were published, shipped or slipped, and are not private as claimed.

`EXHIBITS` holds each with the claim, the worst pair of neighbours and the
price that is really paid; `CORRECT` holds its twin: the same claim about the
same pair, without the fault. They are for the audit and for teaching, and never
stand among the mechanisms.
"""

from exhibits import (
    chains,
    exponential,
    fourier,
    gaussian,
    graphs,
    hierarchies,
    levels,
    margins,
    p_values,
    persons,
    ranks,
    residuals,
    response,
    running,
    second_count,
    second_moment,
    steps_from_spectrum,
    sums,
    tight_filter,
    tuning,
    winners,
)
from exhibits.exhibit import Batched, Exhibit

__all__ = ["CORRECT", "EXHIBITS", "Batched", "Exhibit"]

EXHIBITS: dict[str, Exhibit] = {
    **second_moment.EXHIBITS,
    **gaussian.EXHIBITS,
    **sums.EXHIBITS,
    **exponential.EXHIBITS,
    **steps_from_spectrum.EXHIBITS,
    **tight_filter.EXHIBITS,
    **persons.EXHIBITS,
    **levels.EXHIBITS,
    **response.EXHIBITS,
    **fourier.EXHIBITS,
    **margins.EXHIBITS,
    **graphs.EXHIBITS,
    **hierarchies.EXHIBITS,
    **ranks.EXHIBITS,
    **running.EXHIBITS,
    **second_count.EXHIBITS,
    **chains.EXHIBITS,
    **winners.EXHIBITS,
    **residuals.EXHIBITS,
    **tuning.EXHIBITS,
    **p_values.EXHIBITS,
}

CORRECT: dict[str, Exhibit] = {
    **second_moment.CORRECT,
    **gaussian.CORRECT,
    **sums.CORRECT,
    **exponential.CORRECT,
    **steps_from_spectrum.CORRECT,
    **tight_filter.CORRECT,
    **persons.CORRECT,
    **levels.CORRECT,
    **response.CORRECT,
    **fourier.CORRECT,
    **margins.CORRECT,
    **graphs.CORRECT,
    **hierarchies.CORRECT,
    **ranks.CORRECT,
    **running.CORRECT,
    **second_count.CORRECT,
    **chains.CORRECT,
    **winners.CORRECT,
    **residuals.CORRECT,
    **tuning.CORRECT,
    **p_values.CORRECT,
}
