"""Figures 1 and 2 and Table 1 of Chaudhuri, Sarwate and Sinha (2012), as stored runs.

    DPMODELS_DATA=../shared/data python benchmarks/energy.py --out vignettes/data/near_optimal.csv

Figure 1: captured energy by the number of rows, kddcup99 (116 columns, 4 components) and census
(513 columns, 8 components), rows on the unit sphere, second moments about zero, alpha = 0.1.
Figure 2: captured energy by alpha, 5,000 simulated rows of 10 columns, 2 components. Table 1: the
accuracy of a linear support vector machine on the components of kddcup99. A line of the file is a
mean over repetitions, with its standard error, beside the non-private value. The predicted energy
of ppca is that of theory: k (d - k) / (n alpha) less, half of it for add-remove. Simulated rows of
the same shape stand in for tables that the data folder does not have.
"""

import argparse
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.svm import LinearSVC

import dpmodels as dp
from dpmodels.datasets.papers import PaperTable, near_optimal_rows, paper_table
from dpmodels.design import private_design
from dpmodels.mechanisms import PPCA, AnalyzeGauss, Facts, Gauss, ModSulq, Random
from dpmodels.noise import source
from dpmodels.privacy import ApproxDP, PureDP, adjacency
from dpmodels.released import SubspaceRelease

BESIDE = Path(__file__).parents[2] / "shared" / "data"
ALPHA = 0.1
DELTA = 1e-6
SIZES = {
    "kddcup99": (2_000, 10_000, 20_000, 50_000, 100_000, 494_021),
    "census": (10_000, 50_000, 100_000, 199_523),
}
ALPHAS = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
METHODS = {
    "ppca": (PPCA(), "replace"),
    "ppca, add-remove": (PPCA(), "add-remove"),
    "gauss": (Gauss(), "replace"),
    "analyze_gauss": (AnalyzeGauss(), "replace"),
    "mod_sulq": (ModSulq(), "replace"),
    "random": (Random(), "replace"),
}


@dataclass(frozen=True)
class Setting:
    """A table with what the paper does with its rows."""

    table: PaperTable
    rows: np.ndarray  # shape (rows, columns), in the unit ball
    row_norm: str | float
    mod_sulq_delta: float  # of the published runs

    @property
    def options(self):
        return {"center": False, "scale": None, "row_norm": self.row_norm}

    def first(self, n_rows):
        """The setting with its first rows only."""
        columns = PaperTable(
            self.table.name,
            self.table.rows[:n_rows],
            self.table.label[:n_rows],
            self.table.components,
        )
        return Setting(columns, self.rows[:n_rows], self.row_norm, self.mod_sulq_delta)


def on_the_sphere(table):
    unit = table.rows / np.linalg.norm(table.rows, axis=1, keepdims=True)
    return Setting(table, unit, "unit", 0.01)


def synthetic():
    rows = near_optimal_rows()
    table = PaperTable("synthetic", (rows + 1) / 2, np.zeros(len(rows), dtype=np.int64), 2)
    return Setting(table, rows, 1.0, 0.05)


def directions(release, components):
    if isinstance(release, SubspaceRelease):
        return release.frame
    return np.linalg.eigh(release.second)[1][:, -components:]


def guarantee_of(name, alpha, setting):
    if name.startswith("ppca") or name == "random":
        return PureDP(alpha)
    return ApproxDP(alpha, setting.mod_sulq_delta if name == "mod_sulq" else DELTA)


def columns_of(setting):
    """Columns and codebook of the rows as the paper has them."""
    if setting.table.name != "synthetic":
        return setting.table.columns, setting.table.codebook
    columns = {f"x{index}": column for index, column in enumerate(setting.rows.T, start=1)}
    return columns, dp.Codebook.uniform(list(columns), (-1, 1))


def released(setting, alphas, repeats, methods):
    """Yield alpha, method and the released directions of each repetition."""
    columns, codebook = columns_of(setting)
    design = private_design("~ .", columns, codebook, **setting.options)
    k, measured = setting.table.components, {}
    for alpha in alphas:
        for name, (strategy, relation) in methods.items():
            facts = Facts(setting.rows.shape[1], adjacency(relation), False, k)
            plan = strategy.plan(facts, guarantee_of(name, alpha, setting))
            if plan.lattice not in measured:
                measured[plan.lattice] = strategy.measure(design, plan)
            statistic = measured[plan.lattice]
            with dp.simulation(seed=1):
                releases = [strategy.release(statistic, plan, source()) for _ in range(repeats)]
            yield alpha, name, [directions(release, k) for release in releases]
        with dp.simulation(seed=1):
            fits = [
                dp.dp_pca(
                    "~ .",
                    columns,
                    codebook=codebook,
                    ncomp=k,
                    eps=alpha,
                    delta=DELTA,
                    **setting.options,
                )
                for _ in range(min(repeats, max(1, 100_000 // len(setting.rows))))
            ]
        yield alpha, "default", [fit.loadings.to_numpy() for fit in fits]


def accuracy(setting, frame):
    """Of a support vector machine on half of the rows, for the other half."""
    scores, label, half = setting.rows @ frame, setting.table.label, len(setting.rows) // 2
    machine = LinearSVC(dual=False).fit(scores[:half], label[:half])
    return machine.score(scores[half:], label[half:])


def line(figure, setting, alpha, method, values, reference):
    spread = np.std(values, ddof=1) if len(values) > 1 else math.nan
    return {
        "figure": figure,
        "table": setting.table.name,
        "rows": len(setting.rows),
        "alpha": alpha,
        "method": method,
        "mean": np.mean(values),
        "se": spread / math.sqrt(len(values)),
        "repeats": len(values),
        "non_private": reference,
    }


def predicted(setting, alpha, best):
    """The energy of ppca by theory, under both kinds of neighbours."""
    d, k = setting.rows.shape[1], setting.table.components
    lost = k * (d - k) / (len(setting.rows) * alpha)
    yield "ppca, predicted", best - lost
    yield "ppca, add-remove, predicted", best - lost / 2


def lines(figure, setting, alphas, repeats, *, is_full=True, classify=False):
    """Yield lines of captured energy, and of accuracy if asked for.

    Runs under add-remove, beside the predictions, are of all rows only.
    """
    methods = {
        name: method for name, method in METHODS.items() if is_full or method[1] == "replace"
    }
    second = setting.rows.T @ setting.rows / len(setting.rows)
    values, vectors = np.linalg.eigh(second)
    k = setting.table.components
    best, top = values[-k:].sum(), vectors[:, -k:]
    if classify:
        reference = accuracy(setting, top)
    for alpha, method, frames in released(setting, alphas, repeats, methods):
        energies = [float(np.trace(frame.T @ second @ frame)) for frame in frames]
        yield line(figure, setting, alpha, method, energies, best)
        if classify and "add-remove" not in method:
            scores = [accuracy(setting, frame) for frame in frames]
            yield line("table 1", setting, alpha, method, scores, reference)
    for alpha in alphas if is_full else ():
        for method, energy in predicted(setting, alpha, best):
            yield line(figure, setting, alpha, method, [energy], best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="20 times as many for figure 2")
    parser.add_argument("--tables", nargs="*", default=["synthetic", *SIZES])
    parser.add_argument("--out", type=Path, help="a file; lines of other tables stay in it")
    args = parser.parse_args()
    folder, stored = os.environ.get("DPMODELS_DATA", BESIDE), []
    if args.out and args.out.exists():
        before = pd.read_csv(args.out)
        stored += before[~before["table"].isin(args.tables)].to_dict("records")

    def store(records):
        for record in records:
            stored.append(record)
            print(*(f"{cell:.5g}" if isinstance(cell, float) else cell for cell in record.values()))
            if args.out:
                pd.DataFrame(stored).to_csv(args.out, index=False, float_format="%.5g")

    if "synthetic" in args.tables:
        store(lines("figure 2", synthetic(), ALPHAS, 20 * args.repeats))
    for name in (name for name in SIZES if name in args.tables):
        setting = on_the_sphere(paper_table(name, folder=folder))
        for n_rows in SIZES[name]:
            is_full = n_rows == max(SIZES[name])
            store(
                lines(
                    "figure 1",
                    setting.first(n_rows),
                    (ALPHA,),
                    args.repeats,
                    is_full=is_full,
                    classify=is_full and name == "kddcup99",
                )
            )


if __name__ == "__main__":
    main()
