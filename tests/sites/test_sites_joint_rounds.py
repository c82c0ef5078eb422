"""Mechanisms of many rounds, whose noise all sites add."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.audit.verb_recipes import Recorder
from dpmodels.errors import ArgumentError, BudgetError, PrivacyError
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE, add_noise
from dpmodels.noise import NoiseOfSites, discrete_gaussian, seeded
from dpmodels.privacy import GaussianEvent, gaussian_eps
from dpmodels.privacy.events import all_gaussian
from dpmodels.sites import Parties, SecureSum
from dpmodels.sites.joint_rounds import SLACK, Coalition, InOneProcess, fineness, widening

N = 400
BOOK = {
    "x": (-4, 4),
    "w": (0, 50),
    "y": (-10, 40),
    "g": ["a", "b", "c"],
    "b": ["no", "yes"],
    "k": dp.Numeric(0, 40, step=1),
    "t": dp.Numeric(0, 20, step=1),
}
SKEWED = {**BOOK, "w": (0, 5_000)}
VERBS = {
    "cov": (dp.dp_cov, "~ x + w", {}),
    "pca": (dp.dp_pca, "~ x + w + y", {}),
    "second moments": (dp.dp_cov, "~ x + w", {"center": False}),
    "lm": (dp.dp_lm, "y ~ x + w + g", {}),
    "ellipsoid": (dp.dp_lm, "y ~ x + w", {"mechanism": "ellipsoid"}),
    "HC": (dp.dp_lm, "y ~ x + g", {"vcov": "HC"}),
    "mean": (dp.dp_mean, "w ~ g", {"codebook": SKEWED}),
    "var": (dp.dp_var, "~ w", {"codebook": SKEWED}),
    "quantile": (dp.dp_quantile, "y ~ b", {}),
    "margins": (dp.dp_margins, "~ g*b", {}),
    "bounds": (dp.dp_bounds, "~ w", {"codebook": SKEWED}),
    "logit": (dp.dp_glm, "b ~ x + g", {}),
    "svm": (dp.dp_svm, "b ~ x + g", {}),
    "poisson": (dp.dp_glm, "k ~ x", {"family": "poisson"}),
    "shells": (dp.dp_cov, "~ x + w", {"mechanism": "shells"}),
    "merged": (dp.dp_lm, "y ~ x + g", {"lump": 100}),
    "tree": (dp.dp_hist, "~ y", {"mechanism": "tree", "breaks": 16}),
    "synth": (dp.dp_synth, "~ g + b + t", {"cuts": 4}),
    "wavelet": (dp.dp_hist, "~ y", {"mechanism": "wavelet", "breaks": 16}),
    "grid": (dp.dp_hist, "~ x + y", {"mechanism": "grid", "breaks": 8}),
    "fdr": (dp.dp_fdr, "x + w + g ~ y", {}),
    "fdr of one side": (dp.dp_fdr, "x + y ~ b", {"alternative": "larger"}),
    "select": (dp.dp_select, "~ g:b", {"k": 2}),
    "select above": (dp.dp_select, "~ g", {"threshold": 20, "values": False}),
    "survival": (dp.dp_survfit, "Surv(t, b) ~ g", {"mechanism": "factorisation"}),
}


def rows(n=N, seed=1, number=1):
    rng = np.random.default_rng([seed, number])
    x, w, g = rng.normal(size=n), rng.lognormal(0, 0.8, n), rng.choice(["a", "b", "c"], n)
    y = 1 + x + 0.3 * w + (g == "b") + rng.normal(size=n)
    b = np.where(x + rng.logistic(size=n) > 0, "yes", "no")
    k, t = rng.poisson(np.exp(0.4 * x + 0.3)), rng.integers(0, 20, n)
    return pd.DataFrame({"x": x, "w": w, "y": y, "g": g, "b": b, "k": k, "t": t})


def fitted(name, words, **more):
    verb, formula, options = VERBS[name]
    return verb(formula, **{"codebook": BOOK, "eps": 2, "delta": 1e-6, **options, **words, **more})


class Recorded(NoiseOfSites):
    """Gives answers of before, or new ones; keeps the exact integers of each round."""

    def __init__(self, answers=None):
        self.new, self.answers, self.exact = answers is None, answers or [], []
        self._entropy = seeded(5)

    def answer(self, parts):
        self.exact.append([np.array(exact, dtype=object) for exact, _ in parts])
        if self.new:
            noises = [discrete_gaussian(s, e.size, self._entropy).astype(object) for e, s in parts]
            self.answers.append(
                [
                    exact + noise.reshape(exact.shape)
                    for (exact, _), noise in zip(parts, noises, strict=True)
                ]
            )
        return self.answers[len(self.exact) - 1]


def measured(name, tables):
    witness = Recorder()
    holders = Parties(tuple("AB"), tuple(tables), SecureSum(), witness=witness)
    with dp.simulation(seed=3):
        fitted(name, {"data": holders})
    joint, statistics = witness.measurements[0]
    return joint.strategy, statistics, joint.plan


@pytest.mark.expensive
@pytest.mark.parametrize("name", VERBS)
def test_integers_of_every_round_add_over_the_sites(name):
    """Given the answers before, what a site adds is a function of its rows alone."""
    tables = [rows(number=1), rows(number=2)]
    absent = rows().assign(**dict.fromkeys(BOOK, None))
    exact = {}
    recorded = Recorded()
    for retained in ((0, 1), (0,), (1,), ()):
        values = [
            table if place in retained else absent.copy() for place, table in enumerate(tables)
        ]
        strategy, statistics, plan = measured(name, values)
        noise = recorded if retained == (0, 1) else Recorded(recorded.answers)
        strategy.release(statistics[0] + statistics[1], plan, noise)
        exact[retained] = noise.exact
    assert len({len(rounds) for rounds in exact.values()}) == 1
    for rounds in zip(exact[0, 1], exact[0,], exact[1,], exact[()], strict=True):
        for parts in zip(*rounds, strict=True):
            assert (parts[0] + parts[3] == parts[1] + parts[2]).all()


@pytest.mark.parametrize("colluders", [0, 1])
@pytest.mark.parametrize("name", VERBS)
def test_a_ledger_is_charged_as_for_one_table(name, colluders):
    ledger = dp.Ledger(eps=2, delta=1e-6)
    with dp.simulation(seed=1):
        fit = fitted(
            name,
            {"sites": {"A": rows(number=1), "B": rows(number=2), "C": rows(number=3)}},
            protocol=SecureSum(colluders=colluders),
            ledger=ledger,
        )
    release = fit.release
    assert all_gaussian(release.events)
    squares = sum(event.count / event.multiplier**2 for event in release.events)
    eps = gaussian_eps(1e-6, squares**-0.5)
    assert 1.99 < eps <= 2 * (1 + 1e-9)
    assert release.guarantee.describe() == dp.ApproxDP(2, 1e-6).describe()
    assert release.shared.protocol == "secure_sum"
    assert release.shared.numbers > 0


def test_the_noise_of_all_sites_is_the_planned_one():
    """A chi-square with 3,000 degrees of freedom, two tails of 5e-7."""
    noise = InOneProcess(5, 4, (GaussianEvent(3.0),), seeded(1))
    scale = 2.0**30
    (answer,) = noise.answer([(np.zeros(3_000, dtype=object), scale)])
    square = float((answer.astype(np.float64) ** 2).sum()) / scale**2
    assert stats.chi2.ppf(5e-7, 3_000) < square < stats.chi2.isf(5e-7, 3_000)
    assert (noise.numbers, noise.rounds) == (3_000, 1)


def test_a_coalition_sees_the_noise_that_is_charged():
    """As above; of the last two of five sites nothing is left in what it sees."""
    noise = Coalition(5, 3, (GaussianEvent(3.0),), seeded(1))
    scale = 2.0**30 * widening(5, 3)
    noise.answer([(np.zeros(3_000, dtype=object), scale)])
    square = float((np.array(noise.seen) ** 2).sum()) / (2.0**60 * (1 + SLACK))
    assert stats.chi2.ppf(5e-7, 3_000) < square < stats.chi2.isf(5e-7, 3_000)


@pytest.mark.parametrize(("sites", "scale"), [(3, 2.0**20), (100, 2.0**21), (900, 2.0**25)])
def test_steps_are_fine_enough_for_every_site(sites, scale):
    events = (GaussianEvent(30.0), GaussianEvent(2.0))
    parts = [(np.zeros(50, dtype=object), scale), (np.zeros(7, dtype=object), 2 * scale)]
    finer = fineness(parts, sites, sites - 1, events)
    planned = np.repeat([scale, 2 * scale], [50, 7]) * finer / widening(sites, sites - 1)
    assert scale * finer / math.sqrt(sites) >= 2.0**20
    uneven = 30.0**2 * ((sites - 1) ** 2 // 4) * float((planned**-2.0).sum())
    assert uneven <= SLACK
    answer = InOneProcess(sites, sites - 1, events, seeded(2)).answer(parts)[0]
    assert answer.astype(np.float64).std() > 0


def test_other_randomness_is_refused():
    noise = InOneProcess(3, 2, (GaussianEvent(3.0),), seeded(1))
    exact = np.zeros(2, dtype=object)
    assert add_noise(exact, 2.0**30, noise, GAUSSIAN).shape == (2,)
    with pytest.raises(PrivacyError, match="other random numbers"):
        add_noise(exact, 2.0**30, noise, LAPLACE)
    with pytest.raises(PrivacyError, match="write mechanism='auto'"):
        noise.words(3)


@pytest.mark.parametrize(
    ("verb", "formula", "words", "error", "match"),
    [
        (dp.dp_cov, "~ x", {"mechanism": "laplace"}, ArgumentError, "pooled"),
        (dp.dp_cov, "~ x", {"delta": 0.0}, BudgetError, "pure guarantee"),
        (dp.dp_pca, "~ x + w", {"mechanism": "ppca", "ncomp": 1}, ArgumentError, "pooled"),
        (dp.dp_svm, "b ~ x", {"mechanism": "output"}, ArgumentError, "'auto', or with.*pooled"),
        (dp.dp_select, "y ~ x + w", {}, ArgumentError, r"levels of one variable.*dp\.dp_fdr"),
        (dp.dp_select, "~ g", {"mechanism": "peeling"}, ArgumentError, "'auto'.*pooled"),
        (dp.dp_fdr, "x ~ b", {"mechanism": "moments"}, ArgumentError, "'auto'.*pooled"),
        (dp.dp_levels, "~ g", {}, ArgumentError, r"run dp\.dp_levels at each site.*pooled"),
        (dp.dp_glm, "b ~ x", {"mechanism": "objective"}, ArgumentError, "pooled"),
        (dp.dp_quantile, "~ y", {"mechanism": "exponential"}, ArgumentError, "pooled"),
        (dp.dp_margins, "~ g*b", {"mechanism": "marginals"}, ArgumentError, "pooled"),
    ],
)
def test_what_sites_cannot_share_is_refused_before_a_charge(verb, formula, words, error, match):
    ledger = dp.Ledger(eps=5, delta=1e-5)
    settings = {"codebook": BOOK, "eps": 1, "delta": 1e-6, "ledger": ledger, **words}
    with pytest.raises(error, match=match):
        verb(formula, sites={"A": rows(), "B": rows(seed=2)}, protocol="secure_sum", **settings)
    assert not ledger.entries


def test_the_noise_is_that_of_one_table_but_for_the_colluders():
    sites = {name: rows(2_000, number=place) for place, name in enumerate("ABCD")}
    words = {"codebook": BOOK, "budget": dp.ZCDP(0.5), "mechanism": "residual"}
    with dp.simulation(seed=1), dp.options(clipping=False):
        margins_fit = dp.dp_margins("~ g*b", pd.concat(sites.values()), **words)
        for colluders in (0, 1, 2):
            protocol = SecureSum(colluders=colluders)
            fit = dp.dp_margins("~ g*b", sites=sites, protocol=protocol, **words)
            ratio = np.array(fit.release.noise_sds) / np.array(margins_fit.release.noise_sds)
            np.testing.assert_allclose(ratio, widening(4, 4 - colluders), rtol=1e-6)


def test_dropped_sites_are_planned_for():
    sites = {name: rows(number=place) for place, name in enumerate("ABCDE")}
    with dp.simulation(seed=1):
        fit = fitted("margins", {"sites": sites}, protocol=SecureSum(colluders=1, dropouts=1))
        full = fitted("margins", {"sites": sites}, protocol=SecureSum(colluders=1))
    ratio = np.array(fit.release.noise_sds) / np.array(full.release.noise_sds)
    np.testing.assert_allclose(ratio, math.sqrt(4 / 3), rtol=1e-6)


@pytest.mark.expensive
def test_sites_of_other_sources_give_the_same_release(tmp_path):
    frames = {name: rows(number=place) for place, name in enumerate("AB")}
    paths = {}
    for name, frame in frames.items():
        paths[name] = str(tmp_path / f"{name}.csv")
        frame.to_csv(paths[name], index=False)
    fits = []
    for sites in (frames, paths):
        with dp.simulation(seed=1), dp.options(clipping=False):
            words = {"sites": sites, "csv": "records"} if sites is paths else {"sites": sites}
            fits.append(fitted("lm", words, protocol="secure_sum"))
    pd.testing.assert_series_equal(fits[0].params, fits[1].params)


def test_events_are_those_of_the_guarantee_of_persons():
    table = rows().assign(id=np.arange(N) // 2)
    second = rows(seed=2).assign(id=N + np.arange(N) // 2)
    words = {"person": "id", "rows": 2, "protocol": "secure_sum"}
    with dp.simulation(seed=1):
        fit = fitted("cov", {"sites": {"A": table, "B": second}}, **words)
    assert replace(fit.release.guarantee) == dp.ApproxDP(2, 1e-6)
