"""Coverage and length of survival intervals by hazard and grid, and size and power of the test.

``python benchmarks/survival.py [tables]`` prints, for five hazards and each grid, how often the
intervals of survival, of the restricted mean and of the median hold those of the population, and
their lengths over those of the actuarial estimate alone, whose intervals take half of those
censored in an interval to be at risk in it. Then the log-rank test of two groups with equal
hazards, and with a hazard ratio, beside the test at that estimate, and the coverage of ``coxph``.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import dpmodels as dp
from dpmodels.errors import NotAvailable
from dpmodels.inference.survival import log_rank
from dpmodels.results.survfit import SurvfitResult

END, EPS = 10.0, 1.0
BOOK = dp.codebook(t=(0, END), died=dp.Integer(0, 1), arm=["a", "b"])
GRIDS: tuple[int | None, ...] = (4, 10, 20, None)
KNOTS = np.append(0.0, np.geomspace(1e-8, 60.0, 100_000))


def cumulative(shape: str, times: np.ndarray) -> np.ndarray:
    """Return the cumulative hazard of a shape."""
    return {
        "constant": lambda t: t / 6,
        "rising": lambda t: (t / 6) ** 2.5,
        "falling": lambda t: (t / 5) ** 0.5,
        "bathtub": lambda t: 0.35 * (t / 3) ** 0.5 + 0.6 * (t / 9) ** 5,
        "cured": lambda t: -np.log(0.4 + 0.6 * np.exp(-t / 2)),
    }[shape](times)


SHAPES = ("constant", "rising", "falling", "bathtub", "cured")
CENSORED: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "even": lambda rng, n: rng.uniform(0, 14, n),
    "heavy": lambda rng, n: rng.exponential(2.5, n),
}


def rows(
    rng: np.random.Generator, shape: str, n: int, censored: str, ratio: float = 1.0
) -> dict[str, np.ndarray]:
    """Draw times and endings; events that never come are after the end."""
    hazard = cumulative(shape, KNOTS)
    end = np.interp(rng.exponential(size=n) / ratio, hazard, KNOTS, right=1e6)
    censoring = CENSORED[censored](rng, n)
    return {"t": np.minimum(end, censoring), "died": (end <= censoring).astype(int)}


def coverage(shape: str, n: int, breaks: int | None, tables: int) -> str:
    """Return coverage and lengths of one cell as a line."""
    rng, hits, lengths, intervals = np.random.default_rng(1), [], [], 0
    for _ in range(tables):
        table = rows(rng, shape, n, "heavy" if shape == "cured" else "even")
        fit = dp.dp_survfit("Surv(t, died) ~ 1", table, codebook=BOOK, eps=EPS, breaks=breaks)
        shown, mean, median = fit.tidy(), fit.mean().iloc[0], fit.quantile(0.5).iloc[0]
        intervals = len(fit.times)
        if shown.empty:
            continue
        true = np.exp(-cumulative(shape, shown["time"].to_numpy()))
        inside = (shown["conf_low"] <= true) & (true <= shown["conf_high"])
        grid = np.linspace(0, mean["upto"], 4_001)
        area = np.trapezoid(np.exp(-cumulative(shape, grid)), grid)
        below = np.exp(-cumulative(shape, KNOTS)) <= 0.5
        half = KNOTS[np.argmax(below)] if below.any() else np.inf
        hits.append(
            (
                inside.mean(),
                inside.iloc[len(inside) // 2],
                mean["conf_low"] <= area <= mean["conf_high"],
                median["conf_low"] <= half <= median["conf_high"],
            )
        )
        (curve,) = fit.counted.curves
        low, high = curve.survival.interval(0.95)
        width = curve.area(curve.end - 1, 1 - curve.halved, 0.95).conf_width
        lengths.append(
            (
                ((shown["conf_high"] - shown["conf_low"]) / (high - low)).median(),
                (mean["conf_high"] - mean["conf_low"]) / (2 * width),
            )
        )
    shares, ratios = np.mean(hits, axis=0), np.median(lengths, axis=0)
    texts = " ".join(f"{share:>7.3f}" for share in shares)
    return f"{intervals:>9} {texts}   {ratios[0]:>6.2f} {ratios[1]:>6.2f}"


def actuarial_p(fit: SurvfitResult) -> float:
    """Return the p-value with half of those censored in an interval at risk in it."""
    counted = fit.counted
    curves = [curve.upto(min(curve.end for curve in counted.curves)) for curve in counted.curves]
    exposed = np.stack([curve.exposed for curve in curves])
    # Those censored are counted out before, so that no order is left.
    settled = [
        replace(curve, risk=at, censored=0 * at) for curve, at in zip(curves, exposed, strict=True)
    ]
    return log_rank(counted.cells[:, 1], settled, counted.noise, counted.sums.sd, 1).pvalue


def tests(n: int, breaks: int | None, censored: str, ratio: float, tables: int) -> np.ndarray:
    """Return rejections of both tests at 5 %, and how often ``coxph`` holds the ratio."""
    rng, p_values = np.random.default_rng(2), []
    for _ in range(tables):
        groups = [
            rows(rng, "constant", n // 2, "even"),
            rows(rng, "constant", n // 2, censored, ratio),
        ]
        table = {name: np.concatenate([group[name] for group in groups]) for name in ("t", "died")}
        table["arm"] = np.repeat(["a", "b"], n // 2)
        fit = dp.dp_survfit("Surv(t, died) ~ arm", table, codebook=BOOK, eps=EPS, breaks=breaks)
        try:
            line = fit.coxph().table.iloc[0]
            covered = line["conf_low"] <= np.log(ratio) <= line["conf_high"]
            p_values.append((fit.logrank().pvalue < 0.05, actuarial_p(fit) < 0.05, covered))
        except NotAvailable:
            continue
    return np.mean(p_values, axis=0)


def main(tables: int) -> None:
    """Print coverage by hazard and grid, then the test."""
    print(f"eps = {EPS:g}, {tables} tables; lengths over those of the actuarial estimate alone")
    print(f"{'hazard':<9}{'n':>7} {'intervals':>9} {'S(t)':>7} {'middle':>7} {'mean':>7} "
          f"{'median':>7}   {'S(t)':>6} {'mean':>6}")  # fmt: skip
    with dp.simulation(seed=1):
        for n in (1_000, 10_000):
            for breaks in GRIDS:
                for shape in SHAPES:
                    print(f"{shape:<9}{n:>7} {coverage(shape, n, breaks, tables)}", flush=True)
        print("log-rank test at 5 %: rejections, those at the actuarial estimate; coxph covers")
        for n, effect in ((1_000, 1.35), (10_000, 1.1)):
            for breaks in GRIDS:
                for censored in CENSORED:
                    for ratio in (1.0, effect):
                        exact, actuarial, covered = tests(n, breaks, censored, ratio, tables)
                        print(
                            f"n = {n:>6}, breaks = {breaks or 'default':>7}, {censored} censoring, "
                            f"hazard ratio {ratio:<4}: {exact:.2f} {actuarial:.2f}; {covered:.2f}",
                            flush=True,
                        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
