"""Mechanisms that were published, shipped or slipped, and are not private as claimed.

`EXHIBITS` holds each with the claim, the worst pair of neighbours and the
price that is really paid; `CORRECT` holds the same recipe without the fault.
They are for the audit and for teaching, and never stand among the mechanisms.
"""

from dpmodels.audit.exhibits import (
    bingham_envelope,
    doubled_exponent,
    porous_laplace,
    regression_diagonal,
    reused_seed,
    scaled_by_rows,
    second_moment,
    short_chain,
    steps_from_spectrum,
    sums,
    textbook_gaussian,
    tight_filter,
    told_share,
    wishart,
)
from dpmodels.audit.exhibits.exhibit import Batched, Exhibit

__all__ = ["CORRECT", "EXHIBITS", "Batched", "Exhibit"]

EXHIBITS: dict[str, Exhibit] = {
    "wishart_icassp": wishart.ICASSP,
    "wishart_aaai": wishart.AAAI,
    "add_remove_sensitivity": second_moment.ADD_REMOVE,
    "halved_noise": second_moment.HALVED,
    "bare_diagonal": second_moment.BARE_DIAGONAL,
    "bare_triangle": second_moment.BARE_TRIANGLE,
    "symmetrised_triangle": second_moment.SYMMETRISED,
    "textbook_gaussian": textbook_gaussian.EXHIBIT,
    "unclipped_row": sums.UNCLIPPED,
    "budget_slip": sums.SLIP,
    "exact_count": sums.COUNT,
    "bounds_from_rows": sums.BOUNDS,
    "doubled_exponent": doubled_exponent.EXHIBIT,
    "bingham_envelope": bingham_envelope.EXHIBIT,
    "short_chain": short_chain.EXHIBIT,
    "steps_from_spectrum": steps_from_spectrum.EXHIBIT,
    "porous_laplace": porous_laplace.EXHIBIT,
    "reused_seed": reused_seed.EXHIBIT,
    "regression_diagonal": regression_diagonal.EXHIBIT,
    "scaled_by_rows": scaled_by_rows.EXHIBIT,
    "told_share": told_share.EXHIBIT,
    "tight_filter": tight_filter.EXHIBIT,
}

CORRECT: dict[str, Exhibit] = {
    "wishart_icassp": wishart.CORRECT,
    "wishart_aaai": wishart.CORRECT,
    **second_moment.CORRECT,
    "textbook_gaussian": textbook_gaussian.CORRECT,
    **sums.CORRECT,
    "doubled_exponent": doubled_exponent.CORRECT,
    "bingham_envelope": bingham_envelope.CORRECT,
    "short_chain": short_chain.CORRECT,
    "steps_from_spectrum": steps_from_spectrum.CORRECT,
    "porous_laplace": porous_laplace.CORRECT,
    "reused_seed": reused_seed.CORRECT,
    "regression_diagonal": regression_diagonal.CORRECT,
    "scaled_by_rows": scaled_by_rows.CORRECT,
    "told_share": told_share.CORRECT,
    "tight_filter": tight_filter.CORRECT,
}
