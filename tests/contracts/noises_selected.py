"""The fresh noise in values of what a selection names, in units in which its law is known."""

from typing import Any

import numpy as np
from noises import LAWS, Noise, discrete_laplace, releases_of


def of_selected(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the counts of what is named."""
    crossing = case.crossing(case.formula, data, case.book)
    exact, plan = crossing.statistic.cross()[0].astype(float), crossing.plan.bought.noise
    released = releases_of(crossing, releases)
    draws = (
        np.array([release.values - exact[list(release.places)] for release in released])
        * plan.units_per_row
    )
    if released[0].law == "laplace":
        return {"values": Noise("gaussian", discrete_laplace(np.rint(draws), plan.scale))}
    return {"values": Noise("gaussian", draws / plan.scale)}


def of_columns(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to moments of what is named, where all that may be is.

    Noise of the search has no part in them, so that leaving out the others changes no law.
    """
    crossing = case.crossing(case.formula, data, case.book)
    (n, *sums, total), (_, *squares, square), (_, *products, _) = crossing.statistic.cross()[
        0
    ].tolist()
    released, draws = releases_of(crossing, releases), []
    longest = max(len(release.places) for release in released)
    for release in released:
        if len(release.places) < longest:
            continue
        exact = [products[place] - sums[place] * total / n for place in release.places]
        exact += [squares[place] - sums[place] ** 2 / n for place in release.places]
        exact.append(square - total**2 / n)
        values = np.concatenate([release.values, release.scatters, [release.response]])
        draws.append(values - np.array(exact) * release.step)
    law, draws = released[0].law, draws[: len(draws) // 2 * 2]
    return {"moments": Noise(law, np.array(draws) / released[0].noise_sd * LAWS[law][1])}


def of_gains(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to moments of what is named, of residuals by the coefficients released."""
    crossing = case.crossing(case.formula, data, case.book)
    z = crossing.statistic.cross()[0].astype(float)
    scatter = (z - np.outer(z[0], z[0]) / z[0, 0])[1:, 1:]
    released, draws = releases_of(crossing, releases), []
    for release in released:
        left, stretch, exact = scatter[-1], 1.0, []
        for place, slope in zip(release.places, release.slopes, strict=True):
            exact.append(left[place] / stretch)
            left, stretch = left - slope * scatter[place], stretch + abs(slope)
        exact += [*np.diag(scatter)[[*release.places, -1]]]
        values = np.concatenate([release.values, release.scatters, [release.response]])
        draws.append(values - np.array(exact) * release.step)
    law = released[0].law
    return {"moments": Noise(law, np.array(draws) / released[0].noise_sd * LAWS[law][1])}
