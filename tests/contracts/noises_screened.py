"""The noise in releases of columns that were held against a response, of known law."""

from typing import Any

import numpy as np
from noises import LAWS, Noise, releases_of

from dpmodels.mechanisms.screening.dp_bh import least_of
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
    own = case.crossing(case.formula, data, case.book)
    exact, _ = own.statistic.cross()
    most = reach(own.plan.lattice)
    sums = np.array([exact[0, 0], exact[0, -1] / most, exact[1, -1] / most**2], dtype=float)
    draws: dict[str, list[Any]] = {"response": [], "products": [], "scatters": []}
    for one in releases_of(own, releases):
        chosen = one.chosen.astype(int)
        products = centred_products(exact, round(one.centre * FINE * most))[chosen]
        values = np.array([one.count, one.total, one.squares])
        draws["response"].append((values - sums) / one.response_sd)
        products = (one.products - products.astype(float) / (FINE * most**2)) / one.product_sd
        draws["products"].append(products)
        scatter = scatters(exact)[chosen].astype(float) / most**2
        draws["scatters"].append((one.scatters - scatter) / one.scatter_sd)
        law = one.law
    return {part: Noise(law, np.array(own) * LAWS[law][1]) for part, own in draws.items()}


def of_centred(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """The same, but for squares about means that are not released.

    The tests of the mechanism show these.
    """
    noises = of_screened(case, data, releases)
    return {part: noises[part] for part in ("response", "products")}


def of_logs(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to sums of the response, and to logarithms of the p-values of the chosen."""
    own = case.crossing(case.formula, data, case.book)
    exact, _ = own.statistic.cross()
    facts, most = own.plan.facts, reach(own.plan.lattice)
    unit, sides = FINE * most**2, 1 + (facts.alternative == "two-sided")
    sums = np.array([exact[0, 0], exact[0, -1] / most, exact[1, -1] / most**2], dtype=float)
    draws: dict[str, list[Any]] = {"response": [], "logs": []}
    for one in releases_of(own, releases):
        values = np.array([one.count, one.total, one.squares])
        draws["response"].append((values - sums) / one.response_sd)
        products = centred_products(exact, round(one.centre * FINE * most))
        chosen = SIGNS[facts.alternative](products)[one.chosen.astype(int)]
        levels = log_levels(chosen, one.scale * unit, least_of(facts), sides) / STEPS
        draws["logs"].append((one.logs - levels) / one.log_sd)
    return {
        part: Noise("laplace", np.array(own) * LAWS["laplace"][1]) for part, own in draws.items()
    }
