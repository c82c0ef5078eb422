"""The noise in releases of columns that were held against a response, of known law."""

from typing import Any

import numpy as np
from noises import LAWS, Noise, releases_of

from dpmodels.mechanisms.screening import least_of
from dpmodels.mechanisms.screening_plan import SIGNS
from dpmodels.statistics.associations import (
    FINE,
    STEPS,
    centred_products,
    log_levels,
    reach,
    scatters,
)


def of_screened(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to sums of the response, and to products and scatters of what is chosen."""
    crossing = case.crossing(case.formula, data, case.book)
    exact, _ = crossing.statistic.cross()
    limit = reach(crossing.plan.lattice)
    sums = np.array([exact[0, 0], exact[0, -1] / limit, exact[1, -1] / limit**2], dtype=float)
    draws: dict[str, list[Any]] = {"response": [], "products": [], "scatters": []}
    for release in releases_of(crossing, releases):
        chosen = release.chosen.astype(int)
        products = centred_products(exact, round(release.centre * FINE * limit))[chosen]
        values = np.array([release.count, release.total, release.squares])
        draws["response"].append((values - sums) / release.response_sd)
        products = (
            release.products - products.astype(float) / (FINE * limit**2)
        ) / release.product_sd
        draws["products"].append(products)
        scatter = scatters(exact)[chosen].astype(float) / limit**2
        draws["scatters"].append((release.scatters - scatter) / release.scatter_sd)
        law = release.law
    return {part: Noise(law, np.array(draw) * LAWS[law][1]) for part, draw in draws.items()}


def of_centred(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """The same, but for squares about means that are not released.

    The tests of the mechanism show these.
    """
    noises = of_screened(case, data, releases)
    return {part: noises[part] for part in ("response", "products")}


def of_logs(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to sums of the response, and to logarithms of the p-values of the chosen."""
    crossing = case.crossing(case.formula, data, case.book)
    exact, _ = crossing.statistic.cross()
    facts, limit = crossing.plan.facts, reach(crossing.plan.lattice)
    unit, sides = FINE * limit**2, 1 + (facts.alternative == "two-sided")
    sums = np.array([exact[0, 0], exact[0, -1] / limit, exact[1, -1] / limit**2], dtype=float)
    draws: dict[str, list[Any]] = {"response": [], "logs": []}
    for release in releases_of(crossing, releases):
        values = np.array([release.count, release.total, release.squares])
        draws["response"].append((values - sums) / release.response_sd)
        products = centred_products(exact, round(release.centre * FINE * limit))
        chosen = SIGNS[facts.alternative](products)[release.chosen.astype(int)]
        levels = log_levels(chosen, release.scale * unit, least_of(facts), sides) / STEPS
        draws["logs"].append((release.logs - levels) / release.log_sd)
    return {
        part: Noise("laplace", np.array(draw) * LAWS["laplace"][1]) for part, draw in draws.items()
    }
