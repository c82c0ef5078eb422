import os

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from verb_entry import SUMMING
from verbs import forms

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FrameError, LedgerError
from dpmodels.sites import PROTOCOLS
from dpmodels.verbs import VERBS as DECLARED

CB = dp.codebook(age=(0, 100), wage=(0, 250_000), sex=["F", "M"])
BUDGET = {"codebook": CB, "eps": 1.0, "delta": 1e-6}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, n),
        "wage": rng.uniform(0, 2.5e5, n),
        "sex": rng.choice(["F", "M"], n),
    }


SITES = {"A": rows(300, 1), "B": rows(100, 2), "C": rows(200, 3)}
ALL = {name: np.concatenate([site[name] for site in SITES.values()]) for name in CB}
VERBS = {form.verb.short: form for form in forms("sites").values()}


def released(fit):
    release = fit.release
    return release.values if hasattr(release, "values") else release.second


@pytest.mark.parametrize("verb", VERBS)
def test_pooled_sites_are_one_table_bit_for_bit(verb):
    fit, formula = VERBS[verb].function, VERBS[verb].formula
    with dp.simulation(seed=3):
        distance = fit(formula, sites=SITES, protocol="pooled", **BUDGET)
    with dp.simulation(seed=3):
        total = fit(formula, ALL, **BUDGET)
    assert (released(distance) == released(total)).all()
    assert distance.release.rows == 600


@pytest.mark.parametrize("protocol", [*SUMMING, "dpdispca"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_huge_budget_gives_the_answer_of_all_rows(verb, protocol):
    fit, formula = VERBS[verb].function, VERBS[verb].formula
    if protocol not in VERBS[verb].verb.protocols:
        with pytest.raises(ArgumentError, match=r"dp\.dp_pca (and|or) dp\.dp_cov"):
            fit(formula, sites=SITES, protocol=protocol, **BUDGET)
        return
    # By default the grid depends on the number of rows, except where sites send once.
    grid = {"breaks": 20} if verb == "survfit" else {}
    big = {"codebook": CB, "budget": dp.ZCDP(1e12), **grid}
    # Sums of one round; rounds clip rows before.
    once = {"mechanism": DECLARED[verb].gaussian} if protocol == "secure_sum" else {}
    distance = fit(formula, sites=SITES, protocol=protocol, **big, **once)
    total = fit(formula, ALL, **big, **VERBS[verb].verb.normal)
    assert released(distance) == pytest.approx(released(total), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_table_says_who_is_trusted_and_is_read_back(protocol, tmp_path):
    fit = dp.dp_pca("~ age + wage", sites=SITES, protocol=protocol, ncomp=2, **BUDGET)
    text = str(fit.summary())
    taking_part = 1 if protocol == "local" else 3
    assert f"{taking_part}, protocol {protocol}" in text
    assert f"Trust ({protocol})" in text
    assert "no protocol can detect" in " ".join(text.split())
    fit.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()) == text


def test_what_each_site_sends_is_counted():
    words = {"center": False, "ncomp": 1, **BUDGET}
    columns, formula = 3, "~ age + wage + sex"
    full = dp.dp_pca(formula, sites=SITES, protocol="full", **words).release.shared
    assert full.numbers == columns * (columns + 1) // 2 + 1
    assert full.size == 8 * full.numbers
    part = dp.dp_pca(formula, sites=SITES, protocol=dp.sites.DPdisPCA(R=2), **words)
    assert part.release.shared.numbers == columns * 2 + 1
    private = dp.dp_pca(formula, sites=SITES, protocol="cape", adjacency="add-remove", **words)
    assert private.release.shared.size == 16 * full.numbers
    assert private.release.rows is None


def test_noise_by_protocol():
    words = {"mechanism": "gauss", **BUDGET}
    protocols = {
        **{name: name for name in SUMMING},
        "alone": dp.sites.SecureSum(colluders=0),
        "many": dp.sites.Cape(colluders=2),
    }
    with dp.options(clipping=False):
        fits = {
            name: dp.dp_pca("~ age + wage", sites=SITES, protocol=protocol, **words)
            for name, protocol in protocols.items()
        }
        off = dp.dp_pca("~ age + wage", ALL, **words).release.noise.off
    grown = {name: (fit.release.noise.off / off) ** 2 for name, fit in fits.items()}
    expected = {"full": 3, "cape": 1.5, "secure_sum": 1.5, "alone": 1, "many": 3}
    assert grown == pytest.approx(expected, rel=1e-5)


def test_sites_may_count_alike():
    words = {"codebook": CB, "budget": dp.ZCDP(1e12), "center": False}
    equal = dp.dp_cov("~ age + wage", sites=SITES, protocol=dp.sites.Full("sites"), **words)
    values = [dp.dp_cov("~ age + wage", data, **words).release for data in SITES.values()]
    average = np.mean([value.second / value.rows for value in values], axis=0)
    assert equal.release.second / 600 == pytest.approx(average, rel=1e-5)
    with pytest.raises(ArgumentError, match="has to be public"):
        dp.dp_cov(
            "~ age",
            sites=SITES,
            protocol=dp.sites.Full("sites"),
            adjacency="add-remove",
            **BUDGET,
        )


def test_the_leading_part_is_what_it_says():
    words = {"codebook": CB, "budget": dp.ZCDP(1e12), "center": False}
    fit = dp.dp_pca(
        "~ age + wage + sex", sites=SITES, protocol=dp.sites.DPdisPCA(R=2), ncomp=1, **words
    )
    expected = np.zeros((3, 3))
    for data in SITES.values():
        fit_of_one = dp.dp_cov("~ age + wage + sex", data, mechanism="gauss", **words)
        second = fit_of_one.release.second
        values, vectors = np.linalg.eigh(second)
        expected += (vectors[:, 1:] * values[1:]) @ vectors[:, 1:].T
    assert fit.release.second == pytest.approx(expected, abs=1e-3)


def test_one_charge_for_disjoint_sites():
    for protocol in PROTOCOLS:
        ledger = dp.Ledger(eps=1.0, delta=1e-6)
        dp.dp_pca("~ age + wage", sites=SITES, protocol=protocol, ledger=ledger, **BUDGET)
        assert len(ledger.entries) == 1
        with pytest.raises(LedgerError):
            dp.dp_pca("~ age + wage", sites=SITES, protocol=protocol, ledger=ledger, **BUDGET)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_sites_with_no_row_one_row_and_other_types(protocol, relation):
    sites = {
        "none": {"age": [], "wage": [], "sex": []},
        "one": {"age": [30], "wage": [1e4], "sex": ["F"]},
        "text": pd.DataFrame({"age": ["31", "x"], "wage": ["7", "9"], "sex": ["F", "Q"]}),
        "whole": pd.DataFrame({"age": np.int8([1, 2]), "wage": [5, 6], "sex": ["M", "F"]}),
    }
    if protocol == "local":
        protocol = dp.sites.Local("whole")
    words = {"protocol": protocol, "adjacency": relation, **BUDGET}
    fit = dp.dp_pca("~ age + wage + sex", sites=sites, **words)
    assert np.isfinite(fit.release.second).all()


def test_bad_input_is_refused_before_a_charge():
    ledger = dp.Ledger(eps=1.0, delta=1e-6)

    def refused(error, match, sites=SITES, **words):
        with pytest.raises(error, match=match):
            dp.dp_pca("~ age + wage", sites=sites, ledger=ledger, **{**BUDGET, **words})

    lacking = {"A": SITES["A"], "B": {"age": [1.0]}}
    refused(FrameError, "site 'B'.*wage", lacking, protocol="cape")
    refused(ArgumentError, "says who is trusted")
    refused(ArgumentError, "not known; expected one of 'pooled'", protocol="trust_me")
    refused(
        ArgumentError, "R=3 .* from 2, the components kept, to 2", protocol=dp.sites.DPdisPCA(3)
    )
    refused(ArgumentError, "R=1 .* from 2", protocol=dp.sites.DPdisPCA(1), ncomp=2)
    refused(ArgumentError, "add Gaussian noise", protocol="full", mechanism="laplace")
    refused(BudgetError, "pure guarantee", protocol="full", delta=0.0)
    refused(ArgumentError, "at least one site has to be", {"A": ALL}, protocol="secure_sum")
    refused(ArgumentError, "expected a mapping", [ALL], protocol="pooled")
    refused(ArgumentError, "a name of each site", {1: ALL}, protocol="pooled")
    refused(ArgumentError, "expected one of 'A', 'B', 'C'", protocol=dp.sites.Local("Z"))
    refused(ArgumentError, "expected 'rows'", protocol=dp.sites.Full("size"))
    refused(BudgetError, "does not fit 64 bits", protocol="cape", eps=1e-7)
    assert ledger.entries == ()
    with pytest.raises(ArgumentError, match="both given"):
        dp.dp_pca("~ age", ALL, sites=SITES, protocol="pooled", **BUDGET)
    with pytest.raises(FrameError, match="neither data nor sites"):
        dp.dp_pca("~ age", **BUDGET)
    with pytest.raises(ArgumentError, match="leave it out"):
        dp.dp_pca("~ age", ALL, protocol="full", **BUDGET)


def test_the_parties_show_no_rows():
    clipped = dp.sites.gathered(None, SITES, "pooled")
    assert repr(clipped) == "<Parties: 3, rows not shown>"


@pytest.mark.parametrize("way", ["one process", "files"])
@pytest.mark.parametrize("protocol", SUMMING)
def test_the_noise_that_arrives_is_that_of_the_table(protocol, way, tmp_path):
    """Tables of no rows: KS at false alarm 1e-6 against the law stated."""
    names = [f"l{i}" for i in range(3000)]
    words = {"codebook": dp.codebook(x=names), "eps": 1.0, "delta": 1e-6, "protocol": protocol}
    nothing = {site: {"x": []} for site in "ABC"}
    if way == "one process":
        release = dp.dp_table("~ x", sites=nothing, **words).release
    else:
        keyed = protocol != "full"
        keys = {site: tmp_path / f"{site}.key" for site in nothing}
        cards = [dp.site_key(site, key) for site, key in keys.items()] if keyed else []
        files = [
            dp.site_release(
                "~ x",
                rows_of,
                tmp_path / f"{site}.json",
                site=site,
                session="s",
                verb="table",
                key=keys[site] if keyed else None,
                cards=cards,
                ledger=dp.Ledger.open(tmp_path / f"{site}.ledger", eps=1.0, delta=1e-6, new=True),
                **words,
            )
            for site, rows_of in nothing.items()
        ]
        release = dp.combine(files).release
    assert kstest(release.values / release.noise_sd, "norm").pvalue > 1e-6


def test_leading_parts_are_of_noisy_moments_and_their_law_is_not_claimed():
    words = {"sites": SITES, "protocol": "dpdispca", "ncomp": 1, **BUDGET}
    fits = [dp.dp_pca("~ age + wage + sex", **words).release for _ in range(2)]
    assert not np.isclose(fits[0].second, fits[1].second, rtol=1e-9).any()
    assert np.isnan([fits[0].noise.diagonal, fits[0].noise.off]).all()


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_lies_at_one_site(tmp_path, link):
    file, second = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text("a\n0.1\n0.9\n")
    link(file, second)
    words = {"codebook": dp.codebook(a=(0, 1)), "eps": 1.0, "delta": 1e-6, "protocol": "pooled"}
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    with pytest.raises(FrameError, match=r"site 'B': .* are one file"):
        dp.dp_mean("~ a", sites={"A": file, "B": str(second)}, ledger=ledger, **words)
    assert ledger.entries == ()
    second.unlink()
    second.write_text("a\n0.1\n0.9\n")
    assert dp.dp_mean("~ a", sites={"A": file, "B": second}, **words).release.rows == 4
