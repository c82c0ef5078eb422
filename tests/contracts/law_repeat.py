"""Never the same twice; in a simulation the same again, and stamped."""

import shown
from contract_cases import BOOK, FAINT, Case, table

import dpmodels as dp
from dpmodels.noise import source

STAMP = "SIMULATION"
# Of a selection: one of a few columns, or a number at the end of its range.
COARSE = ("places", "centre", "slopes")


def never_the_same_twice(case: Case) -> None:
    fits = [case.ask(table(case.family.plenty), budget=FAINT[case.kind]) for _ in range(2)]
    first, second = (case.family.numbers(fit.release, without=COARSE) for fit in fits)
    # Each scale is above 2**10 lattice steps: one number repeats with probability
    # below 2**-10, five of them with probability below 1e-12. Cells of a second round are as many
    # as the first one's noise leaves.
    assert sum(a == b for a, b in zip(first, second, strict=False)) < 5, "noise is used twice"
    crossing = case.crossing(case.formula, table(case.family.plenty), BOOK, budget=FAINT[case.kind])
    again = [
        crossing.strategy.release(crossing.statistic, crossing.plan, source()) for _ in range(2)
    ]
    assert case.family.numbers(again[0]) != case.family.numbers(again[1])
    assert not fits[0].simulated
    for text in shown.texts(fits[0]):
        assert STAMP not in text


def a_simulation_repeats_and_is_stamped(case: Case) -> None:
    runs = []
    for seed in (1, 1, 2):
        with dp.simulation(seed=seed):
            words = {"budget": FAINT[case.kind]}
            runs.append([case.ask(table(case.family.plenty), **words) for _ in range(2)])
    first, again, second = ([case.family.numbers(fit.release) for fit in run] for run in runs)
    assert first == again
    if case.mechanism.drawn:
        assert first[0] != first[1], "two releases of one simulation share their noise"
        assert first != second
    for fit in (fit for run in runs for fit in run):
        assert fit.simulated
        assert fit.release.simulated
    for text in shown.texts(runs[0][0]):
        assert STAMP in text, "a table of a simulation is not stamped"
