"""Never the same twice; in a simulation the same again, and stamped."""

import numpy as np
from contract_cases import BOOK, FORMULA, Case, table

import dpmodels as dp
from dpmodels.noise import source

STAMP = "SIMULATION"


def _numbers(fit) -> tuple[float, ...]:
    release = fit.release
    total = () if release.total is None else release.total.tolist()
    return (release.count, *total, *release.second[np.triu_indices(5)].tolist())


def never_the_same_twice(case: Case) -> None:
    fits = [case.fit(FORMULA, table(20), BOOK) for _ in range(2)]
    first, second = map(_numbers, fits)
    # Each scale is above 2**20 lattice steps: one number repeats with probability
    # below 2**-20, three of them with probability below 1e-15.
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 3, "noise is used twice"
    statistic, plan = case.exact(FORMULA, table(20), BOOK)
    strategy = case.mechanism.make()
    again = [strategy.release(statistic, plan, source()).second.tolist() for _ in range(2)]
    assert again[0] != again[1]
    for fit in fits:
        assert not fit.simulated
        for text in _texts(fit):
            assert STAMP not in text


def a_simulation_repeats_and_is_stamped(case: Case) -> None:
    runs = []
    for seed in (1, 1, 2):
        with dp.simulation(seed=seed):
            runs.append([case.fit(FORMULA, table(20), BOOK) for _ in range(2)])
    first, again, other = ([_numbers(fit) for fit in run] for run in runs)
    assert first == again
    assert first[0] != first[1], "two releases of one simulation share their noise"
    assert first != other
    for fit in (fit for run in runs for fit in run):
        assert fit.simulated
        assert fit.release.simulated
        for text in _texts(fit):
            assert STAMP in text, "a table of a simulation is not stamped"


def _texts(fit) -> list[str]:
    summary = fit.summary()
    formats = (summary.as_text, summary.as_html, summary.as_latex, summary.as_markdown)
    return [str(summary), fit._repr_html_(), *(as_format() for as_format in formats)]
