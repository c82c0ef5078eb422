"""Sites release what one table would, with the noise they state, and show nothing else.

Nothing here names a protocol: what is in the package's table is tried.
"""

import dataclasses
from typing import Any

import numpy as np
from contract_cases import BOOK, table
from law_neighbours import ROUNDING, _extreme
from law_noise import ALARM
from law_sensitivity import FAMILIES, NEARLY
from scipy import stats
from site_cases import SITES, SiteCase, divided, taken

import dpmodels as dp
from dpmodels.sites import PROTOCOLS, SiteProtocol, Trust

ROWS = 97
SEED = 4
WIDE = dp.codebook.uniform([f"x{i}" for i in range(40)], (-1, 1))
RELEASES = 4


def integers(release: Any, plan: Any) -> np.ndarray:
    """What was released, in lattice steps or units: each independent number once."""
    if hasattr(release, "values"):
        return np.asarray(release.values * plan.units_per_row)
    radius, steps = plan.lattice.radius, plan.lattice.steps
    total = [] if release.total is None else release.total * (radius * steps)
    upper = np.triu_indices(len(release.second))
    parts = ([release.count * radius**2], total, release.second[upper] * steps**2)
    return np.concatenate(parts)


def scales(plan: Any) -> np.ndarray:
    """The planned noise of the same numbers."""
    if hasattr(plan, "units_per_row"):
        return np.full(plan.facts.parts, plan.scale)
    size, steps = plan.facts.columns, plan.steps
    line, column = np.triu_indices(size)
    total = [steps.mean] * (size * plan.facts.centred)
    return np.concatenate(
        [[steps.count], total, np.where(line == column, steps.diagonal, steps.off)]
    )


def stated(release: Any, plan: Any) -> np.ndarray:
    """The noise that a release states, of the same numbers."""
    if hasattr(release, "values"):
        return np.full(len(release.values), release.noise_sd * plan.units_per_row)
    radius, steps, noise = plan.lattice.radius, plan.lattice.steps, release.noise
    line, column = np.triu_indices(len(release.second))
    total = [noise.mean * radius * steps] * (0 if release.total is None else len(release.total))
    square = np.where(line == column, noise.diagonal, noise.off) * steps**2
    return np.concatenate([[noise.count * radius**2], total, square])


def _exact(case: SiteCase, formula: str, data: Any, book: dp.Codebook, **words: Any) -> np.ndarray:
    """The integers of the seated sites' rows as one table."""
    parts = [divided(data)[name] for name in case.seated]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in data}
    exact, _ = case.whole.exact(formula, joined, book, **words)[0].cross()
    if exact.ndim == 1:
        return exact
    retained = [exact[0, :1], exact[0, 1:]] if case.centred else [exact[0, :1]]
    return np.concatenate([*retained, exact[1:, 1:][np.triu_indices(len(exact) - 1)]])


def the_card_is_complete(name: str) -> None:
    kind: Any = PROTOCOLS[name]
    protocol: SiteProtocol = kind()
    assert dataclasses.is_dataclass(protocol)
    assert kind.__dataclass_params__.frozen
    assert protocol.trust.name == name
    for field in dataclasses.fields(Trust):
        text = getattr(protocol.trust, field.name)
        assert isinstance(text, str), f"trust: {field.name} is no text"
        assert text.strip(), f"trust: {field.name} is empty"
    assert isinstance(protocol.passes_noise, bool)
    assert set(protocol.participants(SITES)) <= set(SITES)


def the_table_says_who_is_trusted(case: SiteCase) -> None:
    fit = case.ask(table(20))
    shared, text = fit.release.shared, " ".join(str(fit.summary()).split())
    assert shared.sites == case.seated
    assert f"{len(case.seated)}, protocol {case.protocol.trust.name}" in text
    sent = [f"{shared.numbers:,} numbers ({shared.size:,} bytes)"] if shared.numbers else []
    for word in (shared.sees, shared.holds, "no protocol can detect", *sent):
        assert word in text, f"not printed: {word}"


def the_integers_are_those_of_one_table(case: SiteCase) -> None:
    """With the same noise on rows and on none: what is left are the exact sums, bit for bit.

    Floats hold noise and sum to far less than half a step.
    """
    data = table(ROWS)
    none = taken(data, slice(0, 0))
    runs = []
    for rows in (data, none):
        with dp.simulation(seed=SEED):
            release = case.ask(rows).release
        runs.append(integers(release, case.own_plan))
    difference = np.rint(runs[0] - runs[1])
    assert difference.tolist() == _exact(case, case.formula, data, BOOK).tolist()


def a_trusted_aggregator_releases_what_one_table_would(case: SiteCase) -> None:
    """With the same noise: bit for bit where the mechanism's own arithmetic is exact."""
    data = table(ROWS)
    draws_found = []
    for tried_case in (case, case.whole):
        with dp.simulation(seed=SEED):
            draws_found.append(tried_case.ask(data).release)
    joint, alone = (case.family.numbers(release) for release in draws_found)
    if draws_found[0].info.numerics.startswith("exact"):
        assert joint == alone
    else:
        np.testing.assert_allclose(joint, alone, rtol=1e-6)


def _measured(case: SiteCase) -> tuple[str, dict[str, Any], dp.Codebook, dict[str, Any]]:
    """Something with many numbers."""
    if case.mechanism.family == "counts":
        return "~ wage", table(30), BOOK, {"breaks": 900}
    rng = np.random.default_rng(6)
    return "~ .", {name: rng.uniform(-1, 1, 30) for name in WIDE}, WIDE, {}


def the_noise_is_what_is_stated(case: SiteCase) -> None:
    """The mean square is a chi-square over its freedom; so is, by Kolmogorov, each number normal.

    False alarms at the rate `ALARM` in all.
    """
    formula, data, book, words = _measured(case)
    exact, plan = _exact(case, formula, data, book, **words), _plan(case, formula, book, **words)
    draws_found = []
    for _ in range(RELEASES):
        release = case.fit(formula, data, book, **words).release
        draws_found.append((integers(release, plan) - exact.astype(float)) / stated(release, plan))
    noise = np.concatenate(draws_found)
    low, high = stats.chi2.ppf(ALARM / 4, noise.size), stats.chi2.isf(ALARM / 4, noise.size)
    assert low < (noise**2).sum() < high, "the noise is not what is stated"
    assert stats.kstest(noise, "norm", method="asymp").pvalue > ALARM / 2, "not gaussian"


def the_honest_sites_noise_is_enough(case: SiteCase) -> None:
    """All sites add alike; what those add who tell nobody is what one release plans."""
    release = case.ask(table(30)).release
    variance = stated(release, case.own_plan) ** 2 / len(case.seated)
    left = variance * case.honest / scales(case.own_plan) ** 2
    assert (left >= 1 - ROUNDING).all(), f"too little by {left.min()}"


def _plan(case: SiteCase, formula: str, book: dp.Codebook, **words: Any) -> Any:
    few = {name: [] for name in book}
    return case.whole.crossing(formula, few, book, **words).plan


def _neighbours(case: SiteCase) -> tuple[str, dp.Codebook, tuple[dict[str, Any], ...], Any]:
    if case.mechanism.family == "counts":
        return "age ~ sex", BOOK, _extreme(case)[::5], {}
    circle = FAMILIES[0]
    return circle.formula, circle.codebook, circle.complete[::7], circle.scaling


def neighbours_at_one_site_are_no_farther_than_declared(case: SiteCase) -> None:
    """With the same noise on both: the released integers, in units of what is planned."""
    formula, book, tried, words = _neighbours(case)
    plan = _plan(case, formula, book, **words)
    (event,) = plan.events
    names = [name for name in tried[0] if name in book]

    def released(*more: dict[str, Any]) -> np.ndarray:
        """With further rows at the last site that takes part."""
        sites = {name: [tried[0], tried[1]] for name in SITES}
        sites[case.seated[-1]] = [*more, tried[0]]
        columns = {
            site: {name: [row[name] for row in rows] for name in names}
            for site, rows in sites.items()
        }
        options = {"sites": columns, "protocol": case.protocol, "codebook": book}
        with dp.simulation(seed=SEED):
            fit = getattr(dp, case.verb.name)(formula, **(options | case.words | words))
        return integers(fit.release, plan) / scales(plan)

    start = released(tried[0]) if case.adjacency == "replace" else released()
    declared = 1 / event.multiplier
    shares = [float(np.linalg.norm(released(row) - start)) / declared for row in tried]
    # Floats carry noise to 2**-52 of it.
    assert max(shares) <= 1 + 1e-6, f"farther than declared: {max(shares)}"
    assert max(shares) >= NEARLY, f"nowhere near: {max(shares)}"


def every_protocol_and_every_verb_is_tried(cases: tuple[SiteCase, ...], verbs: set[str]) -> None:
    assert {case.protocol.trust.name for case in cases} == set(PROTOCOLS)
    assert {case.verb.name for case in cases} == verbs
