"""The noise in releases, by family, in units in which its law is known.

Each function releases the same rows many times and returns, by part, a law of
scale 1 and noise of shape (releases, entries).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.mechanisms import gradient_noise, margins, quantile_rounds
from dpmodels.mechanisms import minimise as minimum
from dpmodels.mechanisms.margins import of_few_rows
from dpmodels.mechanisms.minimise import minimise, tolerance
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.regression import row_location, scores
from dpmodels.mechanisms.scalar import QuantileFacts
from dpmodels.noise import source
from dpmodels.noise.discrete import below
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess import residuals
from dpmodels.statistics import Statistic, moments

SEED = 20240229
# What a law of scale 1 is called elsewhere, and its standard deviation.
LAWS = {"gaussian": ("norm", 1.0), "laplace": ("laplace", math.sqrt(2))}
PARTS = ("count", "mean", "diagonal", "off")
# Quantiles that are counted by rounds.
ROUNDS = ("refined", "tree")


class Noise(NamedTuple):
    """Noise of a law of scale 1, shape (releases, entries)."""

    law: str
    values: np.ndarray


def law_of(case: Any, part: str) -> str:
    return case.mechanism.counts if part in ("count", "mean") else case.mechanism.law


def of_moments(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the number of rows, their sum and their second moment."""
    if case.mechanism.name.startswith("scores"):
        return about_lines(case, data, releases)
    strategy, design, statistic, plan = case.crossing(case.formula, data, case.book)
    lattice = plan.lattice
    exact, _ = moments(design, lattice).cross()
    unit, longer = lattice.steps**2, lattice.radius * lattice.steps
    upper = np.triu_indices(plan.facts.columns, 1)
    square = exact[1:, 1:].astype(float) / unit
    by_part: dict[str, list[Any]] = {part: [] for part in PARTS}
    with dp.simulation(seed=SEED):
        for _ in range(releases):
            release = strategy.release(statistic, plan, source())
            noise = release.second - square
            assert (release.second == release.second.T).all(), "the second moment is not symmetric"
            by_part["count"].append([release.count - float(exact[0, 0]) / lattice.radius**2])
            by_part["diagonal"].append(np.diagonal(noise))
            by_part["off"].append(noise[upper])
            assert (release.total is not None) == case.centred
            if release.total is not None:
                by_part["mean"].append(release.total - exact[0, 1:].astype(float) / longer)
    sds = {part: getattr(release.noise, part) for part in PARTS}
    return {
        part: Noise(law, np.array(draws) / sds[part] * LAWS[law][1])
        for part, draws in by_part.items()
        if draws and (law := law_of(case, part))
    }


def about_lines(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the moments of rows about the line of each release."""
    strategy, _, statistic, plan = case.crossing(case.formula, data, case.book)
    by_part: dict[str, list[Any]] = {part: [] for part in PARTS}
    measured, measure = [], scores.score_moments

    def recorded(*words: Any, **options: Any) -> Statistic:
        measured.append((statistic := measure(*words, **options), words[3]))
        return statistic

    with dp.simulation(seed=SEED), pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "score_moments", recorded)
        for _ in range(releases):
            release = strategy.release(statistic, plan, source())
            last, lattice = measured[-1]
            exact, radius = last.cross()[0].astype(float) / lattice.steps**2, release.ball.radius
            noise = release.second - exact[1:, 1:]
            assert (release.second == release.second.T).all(), "the second moment is not symmetric"
            upper = np.triu_indices(len(noise), 1)
            draws = {
                "count": np.array([release.count - exact[0, 0] * radius**2]),
                "mean": release.total - exact[0, 1:] * radius,
                "diagonal": np.diagonal(noise),
                "off": noise[upper],
            }
            for part, draw in draws.items():
                by_part[part].append(draw / getattr(release.noise, part))
    law = case.mechanism.law
    units = LAWS[law][1]
    return {part: Noise(law, np.array(draws) * units) for part, draws in by_part.items()}


def releases_of(crossing: Any, releases: int) -> list[Any]:
    with dp.simulation(seed=SEED):
        return [
            crossing.strategy.release(crossing.statistic, crossing.plan, source())
            for _ in range(releases)
        ]


def _normal(below: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Turn draws from a discrete law into normal ones.

    A point spread evenly over its own probability, above that of all points
    below it, is uniform.
    """
    spread = np.random.default_rng(0).random(below.shape)
    return stats.norm.ppf(np.clip(below + spread * mass, 1e-300, 1 - 1e-16))


def discrete_laplace(draws: np.ndarray, scale: float) -> np.ndarray:
    ratio, gap = math.exp(-1 / scale), -math.expm1(-1 / scale)
    tail = np.exp(-np.abs(draws) / scale) / (1 + ratio)
    return _normal(np.where(draws <= 0, tail * ratio, 1 - tail), tail * gap)


def _discrete_gaussian(draws: np.ndarray, scale: float) -> np.ndarray:
    # From here on sums are integrals up to half a step, to 1e-8 (the midpoint rule).
    if scale > 1000:
        below, upto = (stats.norm.cdf((draws + half) / scale) for half in (-0.5, 0.5))
        return _normal(below, upto - below)
    # Outside lies a mass below 1e-31.
    places = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    mass = np.exp(-0.5 * (places / scale) ** 2)
    mass /= mass.sum()
    at = draws - places[0]
    return _normal((np.cumsum(mass) - mass)[at], mass[at])


def of_counts(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to each part of each table, in units of the plan's scale."""
    crossing = case.crossing(case.formula, data, case.book)
    exact, plan = crossing.statistic.cross()[0].astype(float), crossing.plan
    released = releases_of(crossing, releases)
    draws = np.array([release.values * plan.units_per_row for release in released]) - exact
    spread = stats.norm if released[0].law == "gaussian" else stats.laplace
    stated = released[0].noise_sd * plan.units_per_row
    # A discrete law of few steps is narrower than the continuous one.
    assert stated <= spread.std() * plan.scale * (1 + 1e-9)
    if released[0].law == "laplace":
        return {"counts": Noise("gaussian", discrete_laplace(np.rint(draws), plan.scale))}
    return {"counts": Noise("gaussian", draws / plan.scale)}


def of_answers(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """Numbers of answers of rows of one cell, each given those before it: binomial."""
    crossing = case.crossing(case.formula, data, case.book)
    cells, rows, eps = crossing.plan.facts.parts, 500, crossing.plan.eps
    exact = np.zeros(cells, dtype=object)
    exact[1] = rows
    crossing_of_counts = crossing._replace(statistic=Statistic("counts", exact, rows))
    answers = np.array([release.values[0] for release in releases_of(crossing_of_counts, releases)])
    chances = np.where(np.arange(cells) == 1, math.exp(eps), 1.0) / (math.exp(eps) + cells - 1)
    draws = []
    for cell in range(cells - 1):
        left = rows - answers[:, :cell].sum(axis=1)
        law = stats.binom(left, chances[cell] / chances[cell:].sum())
        draws.append(_normal(law.cdf(answers[:, cell] - 1), law.pmf(answers[:, cell])))
    return {"answers": Noise("gaussian", np.array(draws).T)}


def of_paired_counts(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the difference of the outer parts, the middle, and the incomplete rows."""
    crossing = case.crossing(case.formula, data, case.book)
    mixed = np.array([[-1.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    exact, plan = crossing.statistic.cross()[0].astype(float), crossing.plan
    draws = (
        np.array(
            [release.values * plan.units_per_row for release in releases_of(crossing, releases)]
        )
        - exact
    )
    return {"counts": Noise("laplace", draws @ mixed.T / plan.scale)}


def of_held_counts(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the parts of rows held in the range that each release states."""
    crossing = case.crossing(case.formula, data, case.book)
    draws = []
    for release in releases_of(crossing, releases):
        at = (
            crossing.statistic
            if release.held is None
            else crossing.statistic.clipped(release.held.lower, release.held.upper)
        )
        draws.append(release.values * crossing.plan.units_per_row - at.cross()[0].astype(float))
        law, mixed = release.law, np.array([[-1.0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    noise = np.array(draws) / crossing.plan.scale
    return {"counts": Noise(law, noise @ mixed.T if release.paired else noise)}


def of_cells(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """The first two draws for the counts of each number in each round."""
    crossing = case.crossing(case.formula, data, case.book)
    draws: dict[str, list[Any]] = {"first": [], "second": []}
    for release in releases_of(crossing, releases):
        stops = np.cumsum([size + 1 for size in release.sizes])[:-1]
        ends, values = np.split(release.ends, stops), np.split(release.values, stops)
        half = len(ends) // 2
        plans = {"first": crossing.plan.first, "second": crossing.plan}
        for (part, plan), at in zip(plans.items(), (slice(half), slice(half, None)), strict=True):
            exact = crossing.statistic.cut(tuple(ends[at])).cross()[0].astype(float)
            noise = np.concatenate(values[at]) * plan.units_per_row - exact * plan.units_per_row
            starts = np.cumsum([0, *map(len, ends[at][:-1])])
            draws[part].append(noise[np.concatenate([starts, starts + 1])])
    law, results = release.law, {}
    for part, plan in plans.items():
        noise = np.array(draws[part])
        normal = discrete_laplace(np.rint(noise), plan.scale) if law == "laplace" else None
        results[part] = Noise("gaussian", noise / plan.scale if normal is None else normal)
    return results


def of_margins(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """Along orthonormal contrasts of each component; or what counts had, before they were fitted.

    The number of rows has none where it is public.
    """
    crossing = case.crossing(case.formula, data, case.book)
    # Of a graph, the first of its rounds.
    facts, plan = crossing.plan.facts, getattr(crossing.plan, "first", crossing.plan)
    exact = crossing.statistic.cross()[0].astype(float)
    if case.mechanism.name == "marginals":
        with _kept(margins, "discrete_laplace") as samples:
            releases_of(crossing, releases)
        return {"counts": Noise("gaussian", discrete_laplace(np.array(samples), plan.scales[0]))}
    released = releases_of(crossing, releases)
    parts = residuals.components(facts.terms)
    tables = residuals.split(exact, facts.largest, facts.sizes)
    if facts.numbers:
        if len(released[0].histograms) < sum(facts.sizes[n.variable] for n in facts.numbers):
            exact, facts = of_few_rows(exact, facts)
            tables = residuals.split(exact, facts.largest, facts.sizes)
        # Later rounds are in cells that differ from release to release: their noise is tested in
        # tests/mechanisms/test_mechanisms_graph_cells.py.
        by_number = [
            residuals.summed(tables[term], term, (number.variable,))
            for number in facts.numbers
            for term in [next(size for size in facts.largest if number.variable in size)]
        ]
        counts = np.array([release.histograms for release in released]) - np.concatenate(by_number)
        return {"histograms": Noise("gaussian", counts / crossing.plan.histograms.noise_sd)}
    draws = []
    for release in released:
        parts_found = residuals.split(release.values, parts, facts.sizes)
        noise = []
        for part, sd in zip(plan.measured, plan.noise_sds, strict=True):
            term = next(size for size in facts.largest if set(part) <= set(size))
            table = parts_found[part]
            rows = residuals.summed(tables[term], term, part)
            for axis, size in enumerate(table.shape):
                table = np.moveaxis(np.tensordot(_contrasts(size), table, (1, axis)), 0, axis)
                rows = np.moveaxis(np.tensordot(_contrasts(size), rows, (1, axis)), 0, axis)
            noise.append((table - rows).ravel() / sd)
        draws.append(np.concatenate(noise))
    return {"components": Noise("gaussian", np.array(draws))}


def _contrasts(size: int) -> np.ndarray:
    """Rows of length 1, orthogonal to each other and to the ones."""
    return np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]])).Q[:, 1:].T


@contextmanager
def _kept(module: Any, name: str) -> Iterator[list[np.ndarray]]:
    """Keep what a sampler of a module draws."""
    recorded: list[np.ndarray] = []
    original = getattr(module, name)

    def kept_too(*words: Any) -> np.ndarray:
        recorded.append(original(*words))
        return recorded[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, kept_too)
        yield recorded


def of_levels(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to counts of levels that are always released."""
    crossing = case.crossing(case.formula, data, case.book)
    plan = crossing.plan
    names, rows = ("a", "b", "c"), 3 * plan.threshold
    exact = np.empty(plan.facts.variables, dtype=object)
    exact[:] = [Counter(dict.fromkeys(names, rows)) for _ in exact]
    result = crossing._replace(statistic=Statistic("levels", exact, rows))
    draws = np.array([release.values for release in releases_of(result, releases)]) - rows
    under, upto = (below(draws - less, plan.scale, plan.threshold) for less in (1, 0))
    return {"counts": Noise("gaussian", _normal(under, upto - under))}


@contextmanager
def _noised_by(module: Any) -> Iterator[list[np.ndarray]]:
    """Keep what a module adds to the integers it is given."""
    recorded: list[np.ndarray] = []
    add_noise = module.add_noise

    def kept_too(exact: np.ndarray, *words: Any) -> np.ndarray:
        sums = add_noise(exact, *words)
        recorded.append(sums - exact.astype(float))
        return sums

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "add_noise", kept_too)
        yield recorded


def _spread(part: str, draws: np.ndarray, law: str, scale: float) -> dict[str, Noise]:
    """Noise of density ``exp(-|v|/s)`` by its lengths and first coordinates; or normal noise."""
    if law == "gaussian":
        return {part: Noise("gaussian", draws / scale)}
    size = draws.shape[1]
    lengths = np.linalg.norm(draws, axis=1, keepdims=True)
    turned = stats.beta((size - 1) / 2, (size - 1) / 2).cdf((draws[:, :1] / lengths + 1) / 2)
    spread = stats.gamma(size).cdf(lengths / scale)
    return {
        f"length of the {part}": Noise("gaussian", stats.norm.ppf(spread)),
        f"direction of the {part}": Noise("gaussian", stats.norm.ppf(turned)),
    }


def of_rates(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What is added to the three sums of gradients."""
    crossing = case.crossing(case.formula, data, case.book)
    scales = [crossing.plan.scales[name] for name in ("first", "next", "last")]
    with _noised_by(gradient_noise) as added:
        releases_of(crossing, releases)
    assert len(added) == releases * len(scales), "a gradient has no noise"
    noise = np.array(added).reshape(releases, len(scales), -1)
    radii = [choose_lattice(crossing.plan.facts.columns, scale).radius for scale in scales]
    draws = noise / (np.array(scales) * np.array(radii))[:, None]
    return {"gradients": Noise("gaussian", draws.reshape(releases, -1))}


def of_coefficients(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """What tilts the objective, masks the minimum, or is added to it or to gradients."""
    crossing = case.crossing(case.formula, data, case.book)
    rows, plan, scales = crossing.statistic, crossing.plan, crossing.plan.scales
    module = gradient_noise if case.mechanism.name == "gradients" else minimum
    with _noised_by(module) as added, _kept(row_location, "locate_rows") as located:
        points = [release.coefficients for release in releases_of(crossing, releases)]
    if module is gradient_noise:
        scales_of_steps = [scales["noise"]] * crossing.strategy.steps + [scales["last"]]
        assert len(added) == releases * len(scales_of_steps), "a gradient has no noise"
        radius = choose_lattice(plan.facts.columns, scales["noise"]).radius
        noise = np.array(added).reshape(releases, len(scales_of_steps), -1) / radius
        draws = noise / np.array(scales_of_steps)[:, None]
        return {"gradients": Noise("gaussian", draws.reshape(releases, -1))}
    law = "gaussian" if scales["gaussian"] else "laplace"
    if case.mechanism.name == "output":
        target = minimise(
            rows, plan.facts.loss, scales["ridge"], np.zeros(len(points[0])), tolerance(0.0)
        ).rounded
        return _spread("minimum", np.array(points) - target, law, scales["noise"])
    assert len(added) == releases, "a minimum is not masked"
    tilts = [
        scales["ridge"] * (most.start - point)
        - rows.within(most.inner.predictors).slopes(point, plan.facts.loss).gradient
        for point, most in zip(points, located, strict=True)
    ]
    mask = Noise(law, np.array(added) / scales["mask"])
    return {**_spread("tilt", np.array(tilts), law, scales["tilt"]), "mask": mask}


def of_quantiles(case: Any, data: Any, releases: int) -> dict[str, Noise]:
    """Noise of the counts of all rounds, or draws of the stated density and noise of numbers."""
    if case.mechanism.name in ROUNDS:
        return _of_rounds(case, releases)
    cells = np.array([[4, 6, 3, 5, 7, 4, 6, 5, 3, 6, 4, 7] * 2, [10, 0, 0, 9, 1, 0, 2, 0] * 3])
    cells[1, ::5] += 7
    relation = case.own_plan.facts.adjacency
    facts = QuantileFacts((0.2, 0.4, 0.5, 0.7), len(cells), Grid(cells.shape[1]), None, relation)
    plan = case.planned(facts, replace(case.guarantee, **{_amount(case.guarantee): 8.0}))
    exact = np.append(cells.ravel(), 0).astype(object)
    strategy, statistic = case.mechanism.make(), Statistic("counts", exact, int(cells.sum()))
    with dp.simulation(seed=SEED):
        released = [strategy.release(statistic, plan, source()) for _ in range(releases)]
    ranks = np.cumsum(np.pad(cells, ((0, 0), (1, 0))), axis=1)[:, None, :]
    expected = np.array([release.drawn for release in released])[..., None] * ranks[..., -1:]
    assert not np.isnan(expected).any(), "a group is hidden by noise"
    away = np.maximum(np.maximum(ranks[..., :-1] - expected, expected - ranks[..., 1:]), 0)
    density = np.exp(-np.array(plan.middle)[:, None] * away)
    density /= density.sum(axis=-1, keepdims=True)
    below = np.cumsum(density, axis=-1) - density
    places = np.array([release.values[:, :, :1] for release in released])
    at = np.rint(places * (cells.shape[1] - 1)).astype(int)
    coordinates = [
        np.take_along_axis(law_part, at, axis=-1)[..., 0] for law_part in (below, density)
    ]
    noisy = np.array([release.counts for release in released]) - cells.sum(axis=1)
    return {
        "places": Noise("gaussian", _normal(*coordinates).reshape(releases, -1)),
        "counts": Noise("gaussian", discrete_laplace(np.rint(noisy), plan.count_scale)),
    }


def _of_rounds(case: Any, releases: int) -> dict[str, Noise]:
    """The first two draws for the counts of each round of each group, in its scale."""
    cells = np.random.default_rng(0).integers(0, 3, (2, 1_500))
    facts = QuantileFacts((0.2, 0.5), 2, Grid(1_500), 0.95, case.own_plan.facts.adjacency)
    plan, strategy = case.planned(facts), case.mechanism.make()
    statistic = Statistic("counts", np.append(cells, 0).astype(object), int(cells.sum()))
    gaussian = plan.law == "gaussian"
    name = "discrete_gaussian" if gaussian else "discrete_laplace"
    recorded: list[np.ndarray] = []
    original = getattr(quantile_rounds, name)

    def kept_too(*words: Any) -> np.ndarray:
        recorded.append(original(*words))
        return recorded[-1]

    with pytest.MonkeyPatch.context() as patch, dp.simulation(seed=SEED):
        patch.setattr(quantile_rounds, name, kept_too)
        for _ in range(releases):
            strategy.release(statistic, plan, source())
    scales = np.tile(np.multiply(plan.scales, plan.units), len(cells))
    assert len(recorded) == releases * len(scales), "a round has no noise"
    first = np.array([noise[:2] for noise in recorded]).reshape(releases, len(scales), 2)
    normal = _discrete_gaussian if gaussian else discrete_laplace
    noise_of_rounds = [
        normal(*round_pair) for round_pair in zip(first.swapaxes(0, 1), scales, strict=True)
    ]
    return {"counts": Noise("gaussian", np.concatenate(noise_of_rounds, axis=1))}


def _amount(guarantee: Any) -> str:
    return "rho" if hasattr(guarantee, "rho") else "eps"


Noises = Callable[[Any, Any, int], dict[str, Noise]]
