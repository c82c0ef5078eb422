"""Never the same twice; in a simulation the same again, and stamped."""

import numpy as np
from contract_cases import BOOK, FORMULA, LARGE, Case, table

import dpmodels as dp
from dpmodels.noise import source
from dpmodels.released import SubspaceRelease

STAMP = "SIMULATION"


def numbers(release) -> list[float]:
    """Everything that was released, as one list."""
    if isinstance(release, SubspaceRelease):
        return release.frame.ravel().tolist()
    total = () if release.total is None else release.total.tolist()
    return [release.count, *total, *release.second[np.triu_indices(len(release.second))].tolist()]


def never_the_same_twice(case: Case) -> None:
    fits = [case.fit(FORMULA, table(200), BOOK, budget=LARGE[case.kind]) for _ in range(2)]
    first, second = (numbers(fit.release) for fit in fits)
    # Each scale is above 2**10 lattice steps: one number repeats with probability
    # below 2**-10, five of them with probability below 1e-12.
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 5, "noise is used twice"
    statistic, plan = case.exact(FORMULA, table(200), BOOK, guarantee=LARGE[case.kind])
    strategy = case.mechanism.make()
    again = [numbers(strategy.release(statistic, plan, source())) for _ in range(2)]
    assert again[0] != again[1]
    assert not fits[0].simulated
    for text in _texts(fits[0]):
        assert STAMP not in text


def a_simulation_repeats_and_is_stamped(case: Case) -> None:
    runs = []
    for seed in (1, 1, 2):
        with dp.simulation(seed=seed):
            words = {"budget": LARGE[case.kind]}
            runs.append([case.fit(FORMULA, table(200), BOOK, **words) for _ in range(2)])
    first, again, other = ([numbers(fit.release) for fit in run] for run in runs)
    assert first == again
    if case.mechanism.drawn:
        assert first[0] != first[1], "two releases of one simulation share their noise"
        assert first != other
    for fit in (fit for run in runs for fit in run):
        assert fit.simulated
        assert fit.release.simulated
    for text in _texts(runs[0][0]):
        assert STAMP in text, "a table of a simulation is not stamped"


def _texts(fit) -> list[str]:
    summary = fit.summary()
    formats = (summary.as_text, summary.as_html, summary.as_latex, summary.as_markdown)
    return [str(summary), fit._repr_html_(), *(as_format() for as_format in formats)]
