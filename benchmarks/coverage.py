"""What dpmodels says of the noise in a spectrum, beside what simulation measures.

Run as ``python benchmarks/coverage.py [releases]``. Every case is a table that
goes through ``dp.dp_pca`` once and is then released again and again from the
same exact moments; confidence intervals draw new rows each time. The truth is
``numpy.linalg.eigh`` of the rows. Every ``+-`` is two Monte-Carlo standard
errors; "seen" is the share of releases with the component above its floor, to
which coverage, debiased eigenvalues and cos2 refer; a dash stands where nothing
is claimed: sds of components that are not alone, biases of rarely seen ones.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import dpmodels as dp
from dpmodels.datasets import load_randhie, randhie_codebook
from dpmodels.design import private_design
from dpmodels.inference import Spectrum
from dpmodels.mechanisms import Facts, Gauss
from dpmodels.noise import source
from dpmodels.postprocess import eigen
from dpmodels.privacy import ApproxDP
from dpmodels.results import PCAResult
from dpmodels.statistics import moments

Floats = NDArray[np.float64]

DELTA = 1e-6
ROW = "{:<13}{:>5}{:>13}{:>16}{:>14}{:>14}{:>8}{:>8}"
NIPS = (0.5, 0.3, 0.04, 0.03, 0.02, 0.01, 0.004, 0.003, 0.001, 0.001)


@dataclass(frozen=True)
class Case:
    name: str
    rows: Any
    codebook: dp.Codebook
    eps: float
    arguments: dict[str, Any] = field(default_factory=dict)


def boxed(values: Floats, eps: float, name: str, **arguments: Any) -> Case:
    """A table of columns declared to lie within (-1, 1)."""
    names = [f"x{j}" for j in range(values.shape[1])]
    rows = dict(zip(names, np.clip(values, -1, 1).T, strict=True))
    title = f"{name} n={len(values)} d={values.shape[1]} eps={eps}"
    return Case(title, rows, dp.codebook.uniform(names, (-1, 1)), eps, arguments)


def gaussian(rng: np.random.Generator, rows: int, variances: Floats) -> Floats:
    """Near-Gaussian rows, four standard deviations inside the bounds."""
    return rng.normal(size=(rows, len(variances))) * np.sqrt(variances)


def turned(rng: np.random.Generator, values: Floats) -> Floats:
    return np.asarray(values @ np.linalg.qr(rng.normal(size=(values.shape[1],) * 2))[0])


def binary(rng: np.random.Generator, rows: int, columns: int, share: float) -> Floats:
    """Correlated rare indicators: means far from the public centre."""
    shared, separate = rng.normal(size=(rows, 1)), rng.normal(size=(rows, columns))
    return np.where(0.7 * shared + 0.7 * separate < ndtri(share), 1.0, -1.0)


def skewed(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    size = np.exp(0.6 * rng.normal(size=(rows, 1)))
    return 2 * np.minimum(rng.exponential(0.08, size=(rows, columns)) * size, 1) - 1


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for rows, eps in ((20_000, 1.0), (20_000, 5.0), (5_000, 5.0)):
        spectrum = turned(rng, gaussian(rng, rows, 0.2 * np.array(NIPS)))
        yield boxed(spectrum, eps, "NIPS 2012")
        yield boxed(spectrum, eps, "NIPS 2012, center=False", center=False)
    for columns in (2, 5, 10, 50):
        factors = rng.normal(size=(20_000, 2)) @ rng.normal(size=(2, columns)) * 0.2
        values = factors + 0.1 * rng.normal(size=factors.shape)
        for eps in (0.5, 2.0):
            yield boxed(values, eps, "two factors")
        yield boxed(values, 1.0, "two factors, sd", scale="sd")
    for columns in (5, 20):
        for adjacency in ("replace", "add-remove"):
            rare = binary(rng, 5_000, columns, 0.05)
            yield boxed(rare, 2.0, f"rare, {adjacency}", adjacency=adjacency)
        yield boxed(rare, 2.0, "rare, center=False", center=False)
        yield boxed(binary(rng, 5_000, columns, 0.2), 2.0, "binary, sd", scale="sd")
        yield boxed(skewed(rng, 5_000, columns), 2.0, "skewed")
    for eps in (0.1, 1.0, 5.0):
        yield Case(f"RAND HIE eps={eps}", load_randhie(), randhie_codebook(), eps)
    sd = {"scale": "sd"}
    yield Case("RAND HIE sd eps=1", load_randhie(), randhie_codebook(), 1.0, sd)


def releases(case: Case, times: int) -> Iterator[PCAResult]:
    """Release the same exact moments again and again."""
    words = {"codebook": case.codebook, **case.arguments}
    first = dp.dp_pca("~ .", case.rows, eps=case.eps, delta=DELTA, **words)
    scaled = {key: words[key] for key in ("scale", "center") if key in words}
    design = private_design("~ .", case.rows, case.codebook, **scaled)
    facts = Facts(len(first.call.names), first.release.adjacency, centred=first.call.center)
    plan = Gauss().plan(facts, ApproxDP(case.eps, DELTA))
    exact = moments(design, plan.lattice)
    for _ in range(times):
        yield PCAResult(first.call, Gauss().release(exact, plan, source()))


def exact_rows(case: Case) -> tuple[PCAResult, Floats]:
    """Return any fit and the rows in its scaled coordinates."""
    words = {"codebook": case.codebook, **case.arguments}
    fit = dp.dp_pca("~ .", case.rows, eps=1.0, delta=DELTA, **words)
    assert fit.coder is not None
    return fit, (fit.coder(case.rows).T - fit.call.origin) / fit.call.divisor


def second_moment(case: Case) -> Floats:
    """Return the non-private covariance or second moment of the rows."""
    fit, rows = exact_rows(case)
    if not fit.call.center:
        return np.asarray(rows.T @ rows / len(rows))
    return np.atleast_2d(np.cov(rows, rowvar=False))


def standardised(matrix: Floats, fit: PCAResult) -> Floats:
    """Divide by exact sds, and weak columns by the bound the release used."""
    cov = fit._analysis.best
    divisor = np.where(cov.weak, cov.divisor, np.sqrt(np.diagonal(matrix)))
    return np.asarray(matrix / np.outer(divisor, divisor))


def eigh(matrix: Floats) -> tuple[Floats, Floats]:
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def share(hits: NDArray[np.bool_]) -> str:
    """A share and two of its standard errors."""
    if len(hits) < 30:
        return "-"
    part = float(hits.mean())
    error = 2 * math.sqrt(max(part * (1 - part), 1 / len(hits)) / len(hits))
    return f"{part:.3f}+-{error:.3f}"


def average(values: Floats) -> str:
    return f"{values.mean():+.2f}+-{2 * values.std() / math.sqrt(len(values)):.2f}"


def ratio(values: Floats, stated: Floats) -> str:
    """The measured sd over the root mean square of what was said."""
    measured = float(values.std() / np.sqrt((stated**2).mean()))
    return f"{measured:.2f}+-{measured * math.sqrt(2 / len(stated)):.2f}"


def read(fit: PCAResult, matrix: Floats) -> tuple[Any, ...]:
    """Everything said about the components of one release, and the truth beside it."""
    if fit.call.scale == "sd":
        matrix = standardised(matrix, fit)
    spectrum, found = fit.spectrum, fit._analysis.eigen.vectors
    values, vectors = eigh(matrix)
    low, high = spectrum.noise_interval()
    total, total_sd = fit._analysis.best.trace
    upper = np.triu_indices(len(matrix), 1)
    return (
        *(values, spectrum.values, spectrum.sd, spectrum.distinct),
        *((low <= values) & (values <= high), spectrum.debiased(), spectrum.captured()),
        *(np.einsum("ij,ik,kj->j", found, matrix, found), spectrum.expected_cos2()),
        *((found * vectors).sum(axis=0) ** 2, spectrum.alike.sum(axis=0)),
        *((total - np.trace(matrix)) / total_sd if total_sd else 0.0, spectrum.entry_sd),
        (fit._analysis.best.matrix - matrix)[upper],
    )


def of_these_rows(case: Case, times: int) -> None:
    matrix = second_moment(case)
    figures = [read(fit, matrix) for fit in releases(case, times)]
    columns = [np.array(column) for column in zip(*figures, strict=True)]
    truth, y, sd, distinct, hit, debiased, captured, along, cos2, actual, group = columns[:11]
    total, entry, off = columns[11:]
    line = f"total variance {average(total)} sd, of sd {total.std():.2f}; "
    print(f"{case.name}: {line}sd of entries {ratio(off, entry) if off.size else '-'}")
    for i in range(min(4, truth.shape[1])):
        is_seen, spread = distinct[:, i], y[:, i].std()
        if is_seen.mean() < 0.2:
            break
        alone, always = group[:, i].mean() < 1.05, is_seen.mean() > 0.95
        print(
            ROW.format(
                f"  PC{i + 1}",
                f"{is_seen.mean():.2f}",
                ratio(y[:, i] - truth[:, i], sd[:, i]) if alone else "-",
                share(hit[is_seen, i]),
                average((debiased - truth)[is_seen, i] / spread) if always else "-",
                average((captured - along)[:, i] / spread),
                f"{cos2[is_seen, i].mean():.3f}",
                f"{actual[is_seen, i].mean():.3f}",
            ),
            flush=True,
        )


def of_noise_alone(times: int) -> None:
    """Tables without variance: how often a component is above its floor."""
    print("\nnothing but noise: share of releases above the floor, asked <= 0.05")
    for columns in (1, 2, 5, 10, 50):
        for where in (0.0, 0.5, 0.95):
            case = boxed(np.full((2_000, columns), where), 1.0, f"constant {where}")
            hits = np.array([fit.spectrum.distinct.any() for fit in releases(case, times)])
            print(f"{case.name:<44}{share(hits)}", flush=True)
    rng = np.random.default_rng(3)
    repeated = np.repeat(binary(rng, 20_000, 1, 0.1), 10, axis=1)
    for scale in ("range", "sd"):
        case = boxed(repeated, 1.0, f"beyond rank one, {scale}", scale=scale)
        hits = np.array([fit.spectrum.distinct[1:].any() for fit in releases(case, times)])
        print(f"{case.name:<44}{share(hits)}", flush=True)


def of_pairs(times: int) -> None:
    """Two eigenvalues at a distance, in noise sds of an entry, and eight at 0."""
    print("\ntwo close eigenvalues: mean cos2 said, mean cos2 measured")
    rng = np.random.default_rng(5)
    for gap in (0, 1, 2, 3, 4, 6, 10, 20):
        ell = np.r_[60.0 + gap, 60.0, np.zeros(8)]
        stated, measured = np.zeros(times), np.zeros(times)
        for time in range(times):
            noise = rng.normal(size=(10, 10))
            found = eigen(np.diag(ell) + (noise + noise.T) / math.sqrt(2))
            spectrum = Spectrum(found.values, 1 + np.eye(10), np.zeros(10), 1.0)
            stated[time] = spectrum.expected_cos2()[0]
            # Either of two equal components may be called the first.
            measured[time] = found.vectors[int(rng.integers(2)) if gap == 0 else 0, 0] ** 2
        print(f"gap {gap:<40}{stated.mean():.3f}  {measured.mean():.3f}", flush=True)


def of_the_population(times: int) -> None:
    """New near-Gaussian rows each time: conf_int against the population's eigenvalues."""
    print("\npopulation: coverage of conf_int for PC1, PC2, PC3, asked 0.95")
    rng = np.random.default_rng(11)
    decaying = 0.05 * np.power(0.6, np.arange(10.0))
    for name, variances, rows, eps in (
        ("decaying", decaying[:5], 1_000, 5.0),
        ("decaying", decaying[:5], 10_000, 1.0),
        ("decaying", decaying, 20_000, 2.0),
        ("two and equal", np.r_[0.05, 0.04, np.full(8, 0.01)], 20_000, 1.0),
        ("two and equal", np.r_[0.05, 0.04, np.full(8, 0.01)], 1_000, 50.0),
    ):
        tables = []
        for _ in range(times):
            case = boxed(gaussian(rng, rows, variances), eps, name)
            fit = dp.dp_pca("~ .", case.rows, eps=eps, delta=DELTA, codebook=case.codebook, ncomp=3)
            tables.append(fit.conf_int().to_numpy())
        low, high = np.moveaxis(np.array(tables), 2, 0)
        hit, is_seen = (low <= variances[:3]) & (variances[:3] <= high), ~np.isnan(low)
        cells = (f"{share(hit[is_seen[:, i], i]):>16}" for i in range(3))
        print(f"{case.name:<44}{''.join(cells)}", flush=True)


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print("each case: total variance, bias in its sd and sd of that (asked 0, 1); each component:")
    heads = ("  component", "seen", "noise_sd", "noise_int", "debiased", "captured")
    print(ROW.format(*heads, "cos2", "cos2"))
    print(ROW.format("", "", "meas./said", "coverage", "bias/sd", "bias/sd", "said", "meas."))
    print(ROW.format("  asked", "", "1", "0.95", "0", "0", "", "= said"))
    with dp.simulation(seed=20_12):
        for case in cases():
            of_these_rows(case, times)
        of_noise_alone(times)
        of_pairs(times)
        of_the_population(times)


if __name__ == "__main__":
    main()
