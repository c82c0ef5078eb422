"""Synthetic tables from released margins: errors beside independent columns and peers, and time.

    python benchmarks/synth.py [adult] [simulated] [sizes] [penalty] [constants] [wins] [products]
                               [triples] [public] [quantiles] [mbi] [peers] [--runs 3]

Errors are mean total variation distances of margins of 1, 2 and 3 columns between synthetic and
real rows, with add-remove neighbours and as many synthetic rows as real ones; missing values are a
level. Everything runs inside `dp.simulation`.

- adult: 13 columns of the shared table, numbers in 3 to 10 cells; beside independent columns from
  the same release, and real rows resampled.
- simulated: mixtures, chains, coded surveys and independent columns, of 3,000 to 100,000 rows.
- sizes: CPU seconds of 40 columns with 6 levels and of 100 with 10, 50,000 rows each, counting
  rows included.
- penalty: the error of three-way margins by the penalty over that of the best, on simulated tables;
  the rule of `dpmodels.postprocess.graphical.fit.strength` is tuned by it.
- constants: the same, for the limits of cliques and the edges that noise may give.
- wins: three shared tables, 1,000 rows of 40 independent columns, and three simulated tables with
  dependence, beside independent columns of the same release and of one that buys nothing else;
  whether the table says that noise wins.
- products: a fifth of the budget for a graph, and all tables of three columns inside its cliques,
  declared, for the rest; beside one call.
- triples: all tables of three columns inside cliques in the second round, which would read the rows
  again, beside the pairs alone.
- public: rows drawn near 5,000 public ones, of the same population and of others, beside those
  drawn without them.
- quantiles: how often intervals of quartiles contain those of these rows and of the population,
  100 releases for each shape and budget.
- mbi: the fit of the independent engine mbi to the same measurements, where it is installed.
- peers: MST and AIM on the same rows of Adult and of a simulated mixture, with at most 600 seconds
  of CPU each: by their papers on mbi, and those of opendp and dpmm where the environment variables
  DPMODELS_OPENDP and DPMODELS_DPMM name Pythons that have them (`benchmarks/synth_peers.py`).
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import combinations, product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.mechanisms import Graph
from dpmodels.mechanisms import margins as margin_mechanisms
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.noise import source
from dpmodels.postprocess.graphical import selection
from dpmodels.postprocess.graphical.fit import fit_model, strength
from dpmodels.postprocess.graphical.measurements import combined, rounds_of
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.sampling import sample
from dpmodels.postprocess.graphical.selection import Limits, choose_structure
from dpmodels.postprocess.graphical.shrinkage import shrunk
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.statistics import Statistic

DATA = Path(os.environ.get("DPMODELS_DATA", "../shared/data"))
MOST_MARGINS = 400
ENGINES = ("mbi", "opendp", "dpmm")
PEERS = Path(__file__).parent / "synth_peers.py"


def adult():
    rows = pd.read_parquet(DATA / "adult.parquet")
    cuts = {
        "age": [0, 20, 25, 30, 35, 40, 45, 50, 55, 65, 100],
        "capital_gain": [-1, 0, 5_000, 10_000, 200_000],
        "capital_loss": [-1, 0, 1_800, 10_000],
        "hours_per_week": [0, 20, 30, 39, 40, 45, 50, 60, 100],
    }
    columns = {name: pd.cut(rows[name], edges, labels=False) for name, edges in cuts.items()}
    kinds = "workclass education marital_status occupation relationship race sex native_country"
    for name in [*kinds.split(), "income"]:
        codes = rows[name].cat.codes
        columns[name] = codes.where(codes >= 0, codes.max() + 1)
    return with_sizes(pd.DataFrame(columns).to_numpy(np.int64))


def with_sizes(codes):
    """Add one level to each column, for what is missing."""
    return codes, tuple((codes.max(axis=0) + 2).tolist())


def mixture(n_rows, levels, classes, rng):
    of = rng.choice(classes, n_rows, p=rng.dirichlet(np.ones(classes)))
    columns = []
    for n_levels in levels:
        base = rng.dirichlet(np.full(n_levels, 0.7))
        running = np.cumsum(rng.dirichlet(2 * n_levels * base + 0.02, classes), axis=1)
        above = running[of] < rng.random(n_rows)[:, None]
        columns.append(np.minimum(above.sum(axis=1), n_levels - 1))
    return with_sizes(np.column_stack(columns))


def chain(n_rows, levels, correlation, rng):
    scores = [rng.normal(size=n_rows)]
    for _ in levels[1:]:
        parent = scores[rng.integers(max(0, len(scores) - 3), len(scores))]
        slope = correlation * rng.uniform(0.3, 1)
        scores.append(slope * parent + math.sqrt(1 - slope**2) * rng.normal(size=n_rows))
    cuts = [np.cumsum(rng.dirichlet(np.full(n_levels, 2.0)))[:-1] for n_levels in levels]
    pairs = zip(scores, cuts, strict=True)
    return with_sizes(np.column_stack([np.searchsorted(np.quantile(z, c), z) for z, c in pairs]))


def survey(n_rows, levels, noise, rng):
    """Columns that are functions of two earlier ones, but for some of the rows."""
    columns = []
    for n_levels in levels:
        shares = rng.dirichlet(np.ones(n_levels))
        fresh = rng.choice(n_levels, n_rows, p=shares)
        if len(columns) > 1:
            first, second = rng.choice(len(columns), 2, replace=False)
            sizes = (levels[first], levels[second])
            value = rng.choice(n_levels, sizes, p=shares)[columns[first], columns[second]]
            fresh = np.where(rng.random(n_rows) < noise * rng.uniform(0.1, 1), fresh, value)
        columns.append(fresh)
    return with_sizes(np.column_stack(columns))


def independent(n_rows, levels, rng):
    return with_sizes(np.column_stack([rng.integers(0, n_levels, n_rows) for n_levels in levels]))


def shared_tables():
    """Return shared tables, numbers in at most 8 cells with about as many rows each."""
    census = (
        "age class_of_worker education marital_stat race hispanic_origin sex citizenship income "
        "family_members_under_18 full_or_part_time_employment_stat tax_filer_stat "
        "weeks_worked_in_year"
    )
    persons = "sex age educ income latino black asian married"
    names = {
        "census_income_kdd": census.split(),
        "pums_california_10000": persons.split(),
        "wine_quality": None,
    }
    tables = {}
    for name, columns in names.items():
        rows = pd.read_parquet(DATA / f"{name}.parquet", columns=columns).iloc[:20_000]
        codes = np.column_stack([_coded(rows[column]) for column in rows])
        tables[f"{name}, {len(codes):,} x {codes.shape[1]}"] = with_sizes(codes)
    return tables


def _coded(column):
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > 12:
        column = pd.qcut(column, 8, duplicates="drop")
    return pd.factorize(column, sort=True, use_na_sentinel=False)[0]


def simulated_tables():
    rng = np.random.default_rng(0)
    return {
        "mixture, 100,000 rows": mixture(100_000, rng.integers(2, 16, 12), 6, rng),
        "mixture, 5,000 rows": mixture(5_000, rng.integers(2, 16, 12), 6, rng),
        "chain, 40,000 rows": chain(40_000, rng.integers(2, 12, 14), 0.9, rng),
        "survey, 20,000 rows": survey(20_000, rng.integers(2, 10, 16), 0.6, rng),
        "independent, 10,000 rows": independent(10_000, rng.integers(2, 8, 10), rng),
        "chain of 40, 9,822 rows": chain(9_822, [6] * 40, 0.8, rng),
    }


def counts(codes, sizes, term):
    flat = np.ravel_multi_index([codes[:, i] for i in term], [sizes[i] for i in term])
    return np.bincount(flat, minlength=math.prod(sizes[i] for i in term))


def released(codes, sizes, rho, terms=()):
    """Release margins; those of declared terms get all of the budget."""
    release = margins(codes, sizes, rho, terms)
    tree = structure_of(release.margins[-1], sizes, most_cells=None)
    first, *later = rounds_of(release, sizes)
    return combined(first, *later) if later else first, tree


def margins(codes, sizes, rho, terms=()):
    """Release all pairs and a graph, or declared terms."""
    pairs = tuple(combinations(range(len(sizes)), 2))
    facts = MarginFacts(sizes, tuple(terms) or pairs, adjacency("add-remove"))
    exact = np.concatenate([counts(codes, sizes, term) for term in facts.largest])
    mechanism = Graph(rounds=1 if terms else 2)
    statistic = Statistic("margins", exact.astype(object), len(codes))
    return mechanism.release(statistic, mechanism.plan(facts, ZCDP(rho)), source())


def errors(codes, rows, sizes):
    errors_found = []
    for k in (1, 2, 3):
        terms = list(combinations(range(len(sizes)), k))
        terms = terms[:: 1 + len(terms) // MOST_MARGINS]
        distances = [
            np.abs(counts(codes, sizes, term) / len(codes) - counts(rows, sizes, term) / len(rows))
            for term in terms
        ]
        errors_found.append(float(np.mean([0.5 * cells.sum() for cells in distances])))
    return np.array(errors_found)


def line(name, errors_found, *rest):
    print(f"{name:34s}", *(f"{error:7.4f}" for error in errors_found), *rest, flush=True)


def compare(name, codes, sizes, runs, budgets):
    for rho in budgets:
        ours, alone, seconds, edges = [], [], [], []
        for seed in range(runs):
            with dp.simulation(seed=seed):
                start = time.process_time()
                joint, tree = released(codes, sizes, rho)
                rows = sample(fit_model(joint, tree), len(codes), source())
                seconds.append(time.process_time() - start)
                plain = sample(fit_model(joint, structure_of([], sizes)), len(codes), source())
            ours.append(errors(codes, rows, sizes))
            alone.append(errors(codes, plain, sizes))
            edges.append(len(tree.edges))
        line(f"{name}, rho {rho:g}", np.mean(ours, axis=0), f"{np.mean(seconds):6.1f} s CPU")
        line("  independent columns", np.mean(alone, axis=0), f"{np.mean(edges):6.1f} edges")


def run_adult(runs):
    codes, sizes = adult()
    compare("Adult", codes, sizes, runs, (0.2, 0.02, 0.002))
    again = codes[np.random.default_rng(0).integers(0, len(codes), len(codes))]
    line("  rows resampled", errors(codes, again, sizes))


def run_simulated(runs):
    for name, (codes, sizes) in simulated_tables().items():
        compare(name, codes, sizes, runs, (0.02, 0.002))


def run_sizes(runs):
    rng = np.random.default_rng(1)
    for columns, levels in ((40, 6), (100, 10)):
        codes, sizes = chain(50_000, [levels] * columns, 0.8, rng)
        compare(f"{columns} columns of {levels} levels", codes, sizes, 1, (0.02,))


def run_penalty(runs):
    factors = (0.1, 0.3, 1.0, 3.0, 10.0)
    print("three-way error by penalty over the rule's:", *factors)
    for name, (codes, sizes) in simulated_tables().items():
        for rho in (0.2, 0.02, 0.002):
            with dp.simulation(seed=1):
                joint, tree = released(codes, sizes, rho)
                rule = strength(joint, tree)
                fits = [fit_model(joint, tree, penalty=rule * factor) for factor in factors]
                rows = [sample(model, len(codes), source()) for model in fits]
            line(f"{name}, rho {rho:g}", [errors(codes, row, sizes)[2] for row in rows])


SETTINGS = {
    "in force": {},
    "20,000 cells": {"limits": Limits(20_000, 60_000)},
    "100,000 cells": {"limits": Limits(100_000, 300_000)},
    "by misses alone": {"CELLS_POWER": 0.0},
    "by misses a cell": {"CELLS_POWER": 1.0},
    "fits after 30 %": {"GROWTH": 0.3},
    "many false edges": {"FALSE_EDGES": 1e9},
    "0.05 false edges": {"FALSE_EDGES": 0.05},
}


def run_constants(runs):
    """Print three-way errors by setting, and the mean of their ratios to those in force."""
    print("three-way error by setting:", *SETTINGS, sep="  ")
    lines = []
    for name, (codes, sizes) in simulated_tables().items():
        for rho in (0.2, 0.02, 0.002):
            errors_found = []
            for options in SETTINGS.values():
                constants = dict(options)
                limits = constants.pop("limits", Limits())
                with (
                    patch.object(
                        margin_mechanisms,
                        "choose_structure",
                        partial(choose_structure, limits=limits),
                    ),
                    patch.multiple(selection, **constants),
                ):
                    errors_found.append(
                        np.mean([_three_way(codes, sizes, rho, k) for k in range(runs)])
                    )
            lines.append(errors_found)
            line(f"{name}, rho {rho:g}", errors_found)
    line("mean ratio to that in force", np.exp(np.log(lines).mean(axis=0)) / _typical(lines))


def _typical(lines):
    return math.exp(float(np.log(lines).mean(axis=0)[0]))


def _three_way(codes, sizes, rho, seed):
    with dp.simulation(seed=seed):
        joint, tree = released(codes, sizes, rho)
        return errors(codes, sample(fit_model(joint, tree), len(codes), source()), sizes)[2]


def run_wins(runs):
    rng = np.random.default_rng(11)
    tables = {
        **shared_tables(),
        "independent, 1,000 x 40": independent(1_000, [4] * 40, rng),
        "strong clusters, 5,000 x 20": mixture(5_000, [5] * 20, 4, rng),
        "chain, 9,822 x 40": chain(9_822, [6] * 40, 0.8, rng),
        "coded survey, 3,000 x 12": survey(3_000, [3] * 12, 0.5, rng),
    }
    for name, (codes, sizes) in tables.items():
        compare(name, codes, sizes, runs, (0.2, 0.02, 0.002))
        for rho in (0.2, 0.02, 0.002):
            with dp.simulation(seed=0):
                joint, tree = released(codes, sizes, rho, [(i,) for i in range(len(sizes))])
                rows = sample(fit_model(joint, tree), len(codes), source())
            line(f"  columns alone, rho {rho:g}", errors(codes, rows, sizes))
            says = [_says_that_noise_wins(codes, sizes, rho, seed) for seed in range(runs)]
            print(f"  says that noise wins: {sum(says)} of {runs}")


def _says_that_noise_wins(codes, sizes, rho, seed):
    book = dp.codebook(**{f"v{i}": list(range(size - 1)) for i, size in enumerate(sizes)})
    with dp.simulation(seed=seed):
        rows = pd.DataFrame(codes, columns=list(book))
        syn = dp.dp_synth("~ .", rows, codebook=book, budget=ZCDP(rho))
    return "Noise" in syn.summary().as_text()


def run_products(runs):
    tables = simulated_tables()
    rng = np.random.default_rng(31)
    tables["survey, 200,000 rows"] = survey(200_000, rng.integers(2, 6, 12), 0.4, rng)
    for name, (codes, sizes) in tables.items():
        for rho in (0.2, 0.02, 0.002):
            errors_found = []
            for seed in range(runs):
                with dp.simulation(seed=seed):
                    _, tree = released(codes, sizes, rho / 5)
                    parts = {term for clique in tree.cliques for term in _parts(clique)}
                    joint, tree = released(codes, sizes, 0.8 * rho, sorted(parts))
                    rows = sample(fit_model(joint, tree), len(codes), source())
                errors_found.append(
                    [errors(codes, rows, sizes)[2], _three_way(codes, sizes, rho, seed)]
                )
            line(f"{name}, rho {rho:g}: products, pairs", np.mean(errors_found, axis=0))


def _parts(clique):
    """Return the triples of a clique, or all of it."""
    return combinations(clique, 3) if len(clique) > 3 else (clique,)


def run_triples(runs):
    """Print three-way errors by what the second round has, and their ratio."""
    for name, (codes, sizes) in {"Adult": adult(), **simulated_tables()}.items():
        for rho in (0.2, 0.02, 0.002):
            errors_found = []
            for seed in range(runs):
                with dp.simulation(seed=seed):
                    errors_found.append(_with_triples(codes, sizes, rho))
            triples, pairs = np.mean(errors_found, axis=0)
            line(f"{name}, rho {rho:g}: triples, pairs", (triples, pairs), f"{triples / pairs:.3f}")


def _with_triples(codes, sizes, rho):
    """Return three-way errors with all triples inside cliques in the second round, and without."""
    pairs = tuple(combinations(range(len(sizes)), 2))
    (first,) = rounds_of(margins(codes, sizes, rho / 2, pairs), sizes)
    tree = choose_structure(first)
    alone = ((i,) for i in range(len(sizes)))
    triples = {part for clique in tree.cliques for part in _parts(clique)}
    errors_found = []
    for terms in (triples, {*alone, *tree.edges}):
        (second,) = rounds_of(margins(codes, sizes, rho / 2, sorted(terms)), sizes)
        rows = sample(fit_model(combined(first, second), tree), len(codes), source())
        errors_found.append(errors(codes, rows, sizes)[2])
    return errors_found


def public_cases():
    """Yield names, rows, sizes and public rows: of the same population and of others."""
    codes, sizes = adult()
    rng = np.random.default_rng(5)
    order = rng.permutation(len(codes))
    rows, rest = codes[order[:40_000]], codes[order[40_000:]]
    women = rest[rest[:, -4] == rest[:, -4].min()]
    shuffled = np.column_stack([rng.permutation(column) for column in rest.T])
    yield from (("Adult", rows, sizes, rest[:5_000]), ("  one sex", rows, sizes, women[:5_000]))
    yield ("  independent columns", rows, sizes, shuffled[:5_000])
    makers = {
        "mixture": lambda seed: mixture(25_000, [6] * 12, 6, np.random.default_rng(seed)),
        "chain": lambda seed: chain(25_000, [6] * 14, 0.9, np.random.default_rng(seed)),
        "survey": lambda seed: survey(
            25_000, [2, 3, 5, 2, 7, 4, 2, 3, 6, 2], 0.5, np.random.default_rng(seed)
        ),
    }
    for name, make in makers.items():
        codes, sizes = make(1)
        yield name, codes[:20_000], sizes, codes[20_000:]
        yield "  another one", codes[:20_000], sizes, make(2)[0][:5_000]
        yield (
            "  uniform rows",
            codes[:20_000],
            sizes,
            rng.integers(0, np.array(sizes) - 1, (5_000, len(sizes))),
        )


def run_public(runs):
    for name, codes, sizes, public in public_cases():
        for rho in (0.2, 0.02, 0.002):
            errors_found = []
            for seed in range(runs):
                with dp.simulation(seed=seed):
                    joint, tree = released(codes, sizes, rho)
                    pulled = shrunk(joint, public.T)
                    models = [fit_model(joint, tree), fit_model(pulled, choose_structure(pulled))]
                    rows = [sample(model, len(codes), source()) for model in models]
                errors_found.append([errors(codes, synthetic, sizes)[2] for synthetic in rows])
            plain, pulled = np.mean(errors_found, axis=0)
            line(f"{name}, rho {rho:g}: without, with", (plain, pulled), f"{pulled / plain:.3f}")


SHAPES = {
    "normal": lambda rng, n: np.clip(rng.normal(50, 12, n), 0, 100),
    "skewed": lambda rng, n: np.clip(rng.gamma(1.5, 8, n), 0, 100),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.4, 0, np.clip(rng.gamma(2, 12, n), 0, 100)),
    "clusters": lambda rng, n: np.clip(rng.choice([15.0, 70.0], n) + rng.normal(0, 4, n), 0, 100),
}
QUARTILES = (0.25, 0.5, 0.75)


def run_quantiles(runs):
    book = dp.codebook(y=(0, 100), g=["a", "b"], h=["u", "v", "w"])
    for name, shape in SHAPES.items():
        truth = np.quantile(shape(np.random.default_rng(1), 1_000_000), QUARTILES)
        for rho in (0.2, 0.02, 0.002):
            inside = []
            for seed in range(100):
                rng = np.random.default_rng(1_000 + seed)
                y = shape(rng, 10_000)
                g, h = np.where(rng.random(10_000) < 0.5, "a", "b"), rng.choice([*"uvw"], 10_000)
                rows = pd.DataFrame({"y": y, "g": g, "h": h})
                with dp.simulation(seed=seed):
                    syn = dp.dp_synth("~ .", rows, codebook=book, budget=ZCDP(rho))
                fit = syn.quantile("~ y", QUARTILES)
                pairs = ((fit.noise_int(), np.quantile(y, QUARTILES)), (fit.conf_int(), truth))
                inside.append([_inside(ends.to_numpy(), exact) for ends, exact in pairs])
            line(f"{name}, rho {rho:g}: noise, conf. int.", np.mean(inside, axis=(0, 2)))


def _inside(ends, exact):
    return (ends[:, 0] <= exact) & (exact <= ends[:, 1])


def run_mbi(runs):
    """Fit the same components by mirror descent of mbi, and print both errors and CPU seconds.

    Steps are as long as is sure to descend, and 1,000 of them are far from the minimum; the two
    minima are compared in tests/postprocess/test_postprocess_graphical_mbi.py.
    """
    try:
        import jax
        import mbi
    except ImportError:
        print("mbi: is not installed")
        return
    jax.config.update("jax_enable_x64", True)
    tables = {name: table for name, table in simulated_tables().items() if " of 40" not in name}
    for name, (codes, sizes) in tables.items():
        for rho in (0.02, 0.002):
            with dp.simulation(seed=0):
                joint, tree = released(codes, sizes, rho)
            for engine in ("dpmodels", "mbi"):
                start = time.process_time()
                model = _of_mbi(mbi, joint, tree) if engine == "mbi" else fit_model(joint, tree)
                seconds = time.process_time() - start
                with dp.simulation(seed=1):
                    rows = sample(model, len(codes), source())
                errors_found = errors(codes, rows, sizes)
                line(f"{engine}, {name}, rho {rho:g}", errors_found, f"{seconds:6.1f} s CPU")


def _of_mbi(mbi, joint, tree):
    """Return the clique tables that mbi fits by 1,000 steps, as a model."""
    import jax.numpy as jnp

    names = [f"v{i}" for i in range(len(tree.sizes))]

    def centred(factor):
        values = factor.values
        for axis in range(values.ndim):
            values = values - values.mean(axis=axis, keepdims=True)
        return jnp.ravel(values)

    measurements = [
        mbi.LinearMeasurement(
            jnp.asarray(table.ravel()), tuple(names[i] for i in part), joint.sds[part], centred
        )
        for part, table in joint.tables.items()
        if part and tree.clique_of(part) is not None
    ]
    smallest = min(joint.sds[part] for part in joint.tables if part)
    step = smallest**2 / (len(measurements) * joint.n_rows)
    fit = mbi.estimation.MirrorDescent(stepsize=step).estimate(
        mbi.Domain(names, tree.sizes), measurements, known_total=joint.n_rows, iters=1_000
    )
    tables = [
        np.maximum(
            np.asarray(fit.project(tuple(names[i] for i in clique)).values, np.float64), 1e-9
        )
        for clique in tree.cliques
    ]
    return GraphicalModel(tree, joint.n_rows, tuple(tables))


def run_peers(runs):
    """Print errors and CPU seconds of all programs, and the ratios of their three-way errors."""
    pythons = {engine: os.environ.get(f"DPMODELS_{engine.upper()}") for engine in ENGINES}
    pythons["mbi"] = pythons["mbi"] or sys.executable
    rng = np.random.default_rng(0)
    tables = {"Adult": adult(), "mixture": mixture(20_000, rng.integers(2, 16, 10), 6, rng)}
    cases = [(name, *table, rho) for name, table in tables.items() for rho in (0.02, 0.002)]
    ours = [_ours(*case) for case in cases]
    for engine, kind in product(ENGINES, ("mst", "aim")):
        if pythons[engine] is None:
            print(f"{engine}: DPMODELS_{engine.upper()} is not set")
            continue
        for case, error in zip(cases, ours, strict=True):
            _peer([pythons[engine], str(PEERS), engine, kind], case, error)


def _ours(name, codes, sizes, rho):
    start = time.process_time()
    with dp.simulation(seed=0):
        joint, tree = released(codes, sizes, rho)
        rows = sample(fit_model(joint, tree), len(codes), source())
    seconds, errors_found = time.process_time() - start, errors(codes, rows, sizes)
    line(f"{name}, rho {rho:g}: dpmodels", errors_found, f"{seconds:7.1f} s CPU")
    return errors_found[2]


def _peer(call, case, ours):
    name, codes, sizes, rho = case
    label = f"{name}, rho {rho:g}: {call[3]} of {call[2]}"
    names = [f"v{i}" for i in range(len(sizes))]
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "rows.csv", Path(folder) / "synthetic.csv"
        pd.DataFrame(codes, columns=names).to_csv(path, index=False)
        call = [*call, str(path), str(rho), str(target)]
        answer = subprocess.run(call, capture_output=True, text=True, check=False)
        if answer.returncode:
            last = ["", *answer.stderr.strip().splitlines()][-1]
            print(f"{label}: no answer, exit {answer.returncode}: {last[:200]}", flush=True)
            return
        rows_of_peer = pd.read_csv(target)[names].fillna(0).to_numpy(np.int64)
    errors_found = errors(codes, np.clip(rows_of_peer, 0, np.array(sizes) - 1), sizes)
    seconds = float(answer.stdout.split()[-1])
    line(
        label, errors_found, f"{seconds:7.1f} s CPU, ours over theirs {ours / errors_found[2]:.2f}"
    )


PARTS = {
    "adult": run_adult,
    "simulated": run_simulated,
    "sizes": run_sizes,
    "penalty": run_penalty,
    "constants": run_constants,
    "wins": run_wins,
    "products": run_products,
    "triples": run_triples,
    "public": run_public,
    "quantiles": run_quantiles,
    "mbi": run_mbi,
    "peers": run_peers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"{'errors of margins of':34s}", *(f"{k:7d}" for k in (1, 2, 3)), "columns")
    for part in options.parts or PARTS:
        PARTS[part](options.runs)


if __name__ == "__main__":
    sys.exit(main())
