"""MST and AIM by their papers on the engine mbi, and those that other programs have.

    python benchmarks/synth_peers.py {mbi,dpmm,opendp} {mst,aim} ROWS.csv RHO TARGET.csv

`benchmarks/synth.py peers` runs this in a process of its own, by the Python that has the engine.
Rows are codes from 0; the last line printed is CPU seconds. A process ends after CPU_SECONDS.

MST (McKenna, Miklau and Sheldon 2021, "Winning the NIST Contest"): a third of rho for all margins
of one column, a third for a spanning tree by exponential mechanisms on what these margins miss of
each pair, a third for the pairs of the tree. Levels below 3 noise sds are merged in between.

AIM (McKenna, Mullins, Sheldon and Miklau 2022): margins of one column, then one margin of at most
three columns after another, chosen by an exponential mechanism; a tenth of each round's budget is
for the choice, and noise is halved where a measurement changed the model by less than its noise.
The workload is all margins of three columns; models have 80 MB at most.

dpmm 0.1.9 on 13 columns of Adult, one release: errors of one, two and three columns .0022, .0383
and .0832 by MST at rho .02 (157 s of CPU), .0058, .0429 and .0899 at .002 (137 s). Its AIM has a
workload of pairs and plans 208 rounds; at .02 it had spent 8 % of rho in 5 of them after 97 s of
CPU, when it was stopped.
"""

import itertools
import math
import resource
import sys
import time

import numpy as np
import pandas as pd

CPU_SECONDS = 600
MODEL_MB, MOST_CELLS = 80, 10**8
STEPS, TOLERANCE = 5_000, 1e-6


class Table:
    """Rows with the noise and the choices that are made of them."""

    def __init__(self, rows):
        import mbi

        domain = mbi.Domain(list(rows), [int(rows[name].max()) + 1 for name in rows])
        self.rows = mbi.Dataset({name: rows[name].to_numpy() for name in rows}, domain)
        self.rng = np.random.default_rng()
        self.exact = {}

    def counts(self, margin):
        if margin not in self.exact:
            self.exact[margin] = np.asarray(self.rows.project(margin).datavector())
        return self.exact[margin]

    def measured(self, margin, sd):
        from mbi import LinearMeasurement

        exact = self.counts(margin)
        return LinearMeasurement(exact + self.rng.normal(0, sd, exact.size), margin, sd)

    def chosen(self, scores, eps, sensitivity):
        """Return a key by the exponential mechanism."""
        keys, values = list(scores), np.array(list(scores.values()))
        weights = np.exp(eps / (2 * sensitivity) * (values - values.max()))
        return keys[self.rng.choice(len(keys), p=weights / weights.sum())]

    def misses(self, fit, margin):
        return float(np.abs(self.counts(margin) - fit.counts(margin)).sum())

    def fitted(self, measurements, total, start=None):
        from mbi.estimation import MirrorDescent

        options = {"iters": STEPS, "tol": TOLERANCE, "warm_start": start}
        fit = MirrorDescent().estimate(self.rows.domain, measurements, total, **options)
        return Fit(fit, self.rows.domain)


class Fit:
    """A model of mbi, whose margins numpy computes: jax compiles each shape of a margin."""

    def __init__(self, engine, domain):
        from dpmodels.postprocess.graphical import model
        from dpmodels.postprocess.graphical.structure import structure_of

        model.MOST_CELLS = MOST_CELLS
        self.engine, self.names = engine, list(domain.attributes)
        self.cliques = [self._positions(clique) for clique in engine.cliques]
        tree = structure_of(self.cliques, domain.shape, most_cells=MOST_CELLS)
        margins = ([self.names[i] for i in clique] for clique in tree.cliques)
        tables = [np.asarray(engine.project(names).values, np.float64) for names in margins]
        tables = tuple(np.maximum(table, 1e-9) for table in tables)
        self.model = model.GraphicalModel(tree, float(engine.total), tables)

    def _positions(self, margin):
        return tuple(sorted(self.names.index(name) for name in margin))

    def counts(self, margin):
        return self.model.table(self._positions(margin)).ravel()


def total_of(measurements):
    """Return the number of rows that tables with equal noise add up to, at least 1."""
    counts = [np.asarray(measured.noisy_measurement) for measured in measurements]
    weights = [1 / table.size for table in counts]
    return max(float(np.average([table.sum() for table in counts], weights=weights)), 1.0)


def mst(rows, rho):
    table, sd = Table(rows), math.sqrt(3 / (2 * rho))
    names = list(rows)
    sd_each = sd * math.sqrt(len(names))
    singles = [table.measured((name,), sd_each) for name in names]
    groups = {m.clique[0]: _grouped(np.asarray(m.noisy_measurement), 3 * sd_each) for m in singles}
    total = total_of(singles)
    table.rows, table.exact = table.rows.compress(groups), {}
    singles = [_merged(m, groups[m.clique[0]]) for m in singles]
    model = table.fitted(singles, total)
    pairs = {pair: table.misses(model, pair) for pair in itertools.combinations(names, 2)}
    eps = math.sqrt(8 * rho / 3 / (len(names) - 1))
    of = {name: {name} for name in names}
    tree = []
    while len(tree) < len(names) - 1:
        first, second = table.chosen(
            {pair: miss for pair, miss in pairs.items() if of[pair[0]] is not of[pair[1]]}, eps, 1.0
        )
        tree.append((first, second))
        joined = of[first] | of[second]
        of |= dict.fromkeys(joined, joined)
    sd_each = sd * math.sqrt(len(tree))
    measurements = [*singles, *(table.measured(pair, sd_each) for pair in tree)]
    model = table.fitted(measurements, total)
    return model.engine.synthetic_data(len(rows)).decompress(groups)


def _grouped(counts, smallest):
    """Return the group of each level: one for all small ones."""
    clear = counts >= smallest
    clear[counts.argmax()] = True
    return np.where(clear, np.cumsum(clear) - 1, clear.sum())


def _merged(measured, groups):
    """Return counts by group, with the noise of each in the weights."""
    from mbi import LinearMeasurement
    from mbi.marginal_loss import WeightedQuery

    sizes = np.bincount(groups)
    weights = 1 / np.sqrt(sizes)
    counts = np.bincount(groups, weights=np.asarray(measured.noisy_measurement)) * weights
    return LinearMeasurement(counts, measured.clique, measured.stddev, WeightedQuery(weights))


def aim(rows, rho):
    table, names = Table(rows), list(rows)
    domain, rounds = table.rows.domain, 16 * len(names)
    triples = list(itertools.combinations(names, min(3, len(names))))
    margins = {part for t in triples for k in (1, 2, 3) for part in itertools.combinations(t, k)}
    weight = {m: sum(len({*m} & {*t}) for t in triples) for m in sorted(margins)}
    sd, eps = math.sqrt(rounds / (1.8 * rho)), math.sqrt(0.8 * rho / rounds)
    measurements = [table.measured((name,), sd) for name in names]
    spent = len(names) / (2 * sd**2)
    total = total_of(measurements)
    model = table.fitted(measurements, total)
    while spent < rho * (1 - 1e-9):
        if rho - spent < 2 * (1 / (2 * sd**2) + eps**2 / 8):
            sd, eps = math.sqrt(1 / (1.8 * (rho - spent))), math.sqrt(0.8 * (rho - spent))
        spent += 1 / (2 * sd**2) + eps**2 / 8
        possible = _fitting(domain, model, weight, MODEL_MB * spent / rho)
        bias = math.sqrt(2 / math.pi) * sd
        scores = {m: weight[m] * (table.misses(model, m) - bias * domain.size(m)) for m in possible}
        margin = table.chosen(scores, eps, max(weight[m] for m in possible))
        before = model.counts(margin)
        measurements.append(table.measured(margin, sd))
        model = table.fitted(measurements, total, model.engine)
        change = float(np.abs(model.counts(margin) - before).sum())
        if change <= bias * domain.size(margin):
            sd, eps = sd / 2, 2 * eps
    return model.engine.synthetic_data(len(rows))


def _fitting(domain, model, margins, megabytes):
    """Return margins that the model contains, or that leave it small enough."""
    from mbi.junction_tree import hypothetical_model_size

    cliques = [tuple(clique) for clique in model.engine.cliques]
    return [
        margin
        for margin in margins
        if any({*margin} <= {*clique} for clique in cliques)
        or hypothetical_model_size(domain, [*cliques, margin]) <= megabytes
    ]


def by_mbi(kind, rows, rho):
    import jax

    jax.config.update("jax_enable_x64", True)
    codes = {"mst": mst, "aim": aim}[kind](rows, rho).to_dict()
    return pd.DataFrame({name: np.asarray(codes[name]) for name in rows})


def by_dpmm(kind, rows, rho):
    from dpmm.models.base.mechanisms.cdp2adp import cdp_eps
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    make = {"mst": MSTPipeline, "aim": AIMPipeline}[kind]
    pipeline = make(epsilon=cdp_eps(rho, 1e-9), delta=1e-9, disable_processing=True, n_jobs=1)
    pipeline.fit(rows, domain={name: int(rows[name].max()) + 1 for name in rows})
    return pipeline.generate(n_records=len(rows))[list(rows)]


def by_opendp(kind, rows, rho):
    """Try some budgets: at most of them the sum of its parts is above the total by rounding."""
    import opendp.prelude as odp
    import polars as pl

    odp.enable_features("contrib")
    algorithm = {"mst": odp.mbi.MST, "aim": odp.mbi.AIM}[kind]()
    keys = {name: list(range(int(rows[name].max()) + 1)) for name in rows}
    frame = pl.LazyFrame({name: rows[name].to_numpy() for name in rows})
    for budget in rho * (1 - 1e-3 * np.arange(6)):
        loss = {"rho": float(budget)}
        unit = odp.unit_of(contributions=1)
        context = odp.Context.compositor(
            data=frame, privacy_unit=unit, privacy_loss=odp.loss_of(**loss)
        )
        query = context.query(**loss).contingency_table(keys=keys, algorithm=algorithm)
        try:
            return query.release().synthesize(len(rows)).to_pandas()[list(rows)]
        except odp.OpenDPException as error:
            refused = error
            if "insufficient budget" not in str(error):
                break
    raise refused


def main():
    engine, kind, path, rho, target = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    make = {"mbi": by_mbi, "dpmm": by_dpmm, "opendp": by_opendp}[engine]
    rows = pd.read_csv(path)
    start = time.process_time()
    make(kind, rows, float(rho)).to_csv(target, index=False)
    print(time.process_time() - start)


if __name__ == "__main__":
    sys.exit(main())
