"""What is predicted from public facts, held against real fits.

    python benchmarks/prediction.py [--fits 550] [--seed 1] [--only-fits] [--repeats 3]

Of the predictor: its noise sd over that of fits of drawn rows, by call and by shape of the rows,
which it does not know; the share of futile calls, which identify nothing, that warned, and that of
useful calls that did; CPU of a warning. Of compare_mechanisms: the error of the automatic choice
over that of the best, the median and the worst of five shapes of rows, and how long a call takes
with a thousand times as many rows, in units of the first.
"""

import argparse
import itertools
import statistics
import time
import warnings

import numpy as np
import pandas as pd

import dpmodels as dp
from dpmodels.errors import BudgetWarning
from dpmodels.models.assumed_rows import LAWS, assumed_rows
from dpmodels.models.predictor import assumed_private, estimates_of, identified_share, predict
from dpmodels.models.release import verb_of
from dpmodels.models.verb_spec import planned
from dpmodels.sites import parties

VERBS = {"gaussian": dp.dp_lm, "binomial": dp.dp_glm}
BOOK = dp.codebook(
    age=(18, 90),
    wage=(0, 80),
    visits=dp.Integer(0, 40),
    sex=["F", "M"],
    edu=["a", "b", "c"],
    area=[f"r{number}" for number in range(30)],
)
CALLS = {
    "mean": ("mean", "wage ~ sex", {}),
    "mean area": ("mean", "wage ~ area", {}),
    "var": ("var", "wage ~ edu", {}),
    "ttest": ("ttest", "wage ~ sex", {}),
    "summary": ("summary", "wage ~ area", {}),
    "table": ("table", "~ sex + edu", {}),
    "quantile": ("quantile", "wage ~ sex", {}),
    "lm": ("lm", "wage ~ age + edu", {}),
    "lm HC": ("lm", "wage ~ age + edu", {"vcov": "HC"}),
    "lm area": ("lm", "wage ~ age + area", {}),
    "logit": ("glm", "sex ~ age + wage", {}),
    "logit 1": ("glm", "sex ~ age", {}),
    "poisson": ("glm", "visits ~ age + sex", {"family": "poisson"}),
    "multinomial": ("glm", "edu ~ age + wage", {"family": "multinomial"}),
    "cov": ("cov", "~ age + wage + visits", {}),
    "pca": ("pca", "~ age + wage + visits", {}),
}


def book(columns, family):
    response = (0, 100) if family == "gaussian" else ["no", "yes"]
    return dp.codebook(y=response, **{f"x{number}": (0, 10) for number in range(columns)})


def automatic(family, repeats):
    print(f"\n{family}: auto over best, median and worst shape")
    for columns, n in itertools.product((3, 10), (1_000, 10_000, 100_000, 1_000_000)):
        cells = []
        for eps, delta in itertools.product((0.3, 1.0, 3.0), (0.0, 1e-6)):
            words = {"codebook": book(columns, family), "n": n, "eps": eps, "delta": delta}
            comparison = dp.compare_mechanisms("y ~ .", family=family, repeats=repeats, **words)
            cells.append(f"{comparison.behind.median():6.2f}{comparison.behind.max():6.2f}")
        print(f"{columns:3d} columns, n = {n:9,d}: " + " |".join(cells), flush=True)


def seconds(family):
    def taken(n):
        begun = time.perf_counter()
        words = {"codebook": book(5, family), "n": n, "eps": 1.0, "delta": 1e-6, "repeats": 1}
        dp.compare_mechanisms("y ~ .", family=family, **words)
        return time.perf_counter() - begun

    taken(10_000)
    pairs = [(taken(10_000), taken(10_000_000)) for _ in range(5)]
    few, many_rows = map(statistics.median, zip(*pairs, strict=True))
    print(f"{family}: {few:.2f} s at n = 10,000; at a thousand times as many {many_rows / few:.2f}")


def a_fit(name, shape, n, eps, delta, rng):
    """Return a fit of drawn rows against its prediction, and whether the call warned."""
    verb, formula, options = CALLS[name]
    rows = assumed_rows(BOOK, shape).rows(n, int(rng.integers(2**31)))
    words = {"codebook": BOOK, "eps": eps, "delta": delta, **options}
    call = getattr(dp, f"dp_{verb}")
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", BudgetWarning)
        fit = call(formula, rows, **words)
    seconds = time.process_time() - begun
    with dp.simulation(seed=1):  # Without a prediction
        begun = time.process_time()
        call(formula, rows, **words)
        alone = time.process_time() - begun
    spec = verb_of(verb).spec(fit.request)
    private = assumed_private(spec, n)
    choice = planned(spec, parties({}), options.get("mechanism", "auto"), [private])
    predicted, real = predict(spec, choice, n), estimates_of(fit)
    ratio = (predicted["noise_sd"].reindex(real.index) / real["noise_sd"]).dropna()
    return {
        "call": name,
        "shape": shape,
        "ratio": ratio[np.isfinite(ratio)].median(),
        "identified": identified_share(real),
        "expected": identified_share(predicted),
        "warned": any(issubclass(warning.category, BudgetWarning) for warning in warned),
        "warning ms": 1_000 * (seconds - alone),
        "fit ms": 1_000 * alone,
    }


def against_fits(count, seed):
    """Print predicted over realised noise, and which futile and useful calls warned."""
    rng, lines = np.random.default_rng(seed), []
    cells = list(itertools.product(CALLS, LAWS, (500, 2_000, 5_000, 20_000), (0.3, 1.0, 3.0)))
    for place in rng.permutation(len(cells))[:count]:
        try:
            lines.append(a_fit(*cells[place], rng.choice([0.0, 1e-6]), rng))
        except dp.errors.BudgetError:  # The verb refuses so small a budget before the charge
            continue
    table = pd.DataFrame(lines)
    futile, useful = table["identified"] == 0, table["identified"] > 0
    quantiles = {"median": 0.5, "5 %": 0.05, "95 %": 0.95}
    for by in ("call", "shape"):
        groups = table.groupby(by, sort=False)
        print(
            pd.DataFrame(
                {name: groups["ratio"].quantile(level) for name, level in quantiles.items()}
                | {
                    "fits": groups.size(),
                    "futile": futile.groupby(table[by]).sum(),
                    "announced": (futile & table["warned"]).groupby(table[by]).sum(),
                    "useful warned": (useful & table["warned"]).groupby(table[by]).sum(),
                    "warning ms": groups["warning ms"].median(),
                    "fit ms": groups["fit ms"].median(),
                }
            )
            .round(2)
            .to_string()
        )
    low, middle, high = table["ratio"].quantile([0.05, 0.5, 0.95])
    print(
        f"{len(table)} fits, predicted over realised noise sd: median {middle:.2f}, 5 to 95 % "
        f"{low:.2f} to {high:.2f}"
    )
    for name, mask in {"futile calls announced": futile, "useful calls warned": useful}.items():
        share = table.loc[mask, "warned"].mean()
        error = (share * (1 - share) / mask.sum()) ** 0.5
        print(f"{name}: {share:.3f} of {mask.sum()} (se {error:.3f})")
    medians = table["warning ms"].groupby(table["warned"]).median()
    print(f"CPU of a prediction before the charge, ms by whether it warned: {medians.to_dict()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fits", type=int, default=550)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only-fits", action="store_true")
    options = parser.parse_args()
    against_fits(options.fits, options.seed)
    if options.only_fits:
        return
    for family in VERBS:
        seconds(family)
    for family in VERBS:
        automatic(family, options.repeats)


if __name__ == "__main__":
    main()
