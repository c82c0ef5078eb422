"""Sites with rows that are not as declared: refused by name, or counted as incomplete."""

import json

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError

CB = dp.codebook(age=(0, 100), income=(0, 250_000), sex=["F", "M"])
BUDGET = {"codebook": CB, "eps": 1.0, "delta": 1e-6}
VERBS = {
    "pca": (dp.dp_pca, "~ age + income + sex"),
    "cov": (dp.dp_cov, "~ age + income"),
    "lm": (dp.dp_lm, "income ~ age + sex"),
    "mean": (dp.dp_mean, "income ~ sex"),
    "table": (dp.dp_table, "~ sex"),
}
PROTOCOLS = ("pooled", "full", "cape", "secure_sum", "dpdispca")


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "income": rng.uniform(0, 2e5, n),
            "sex": rng.choice(["F", "M"], n),
        }
    )


WHOLE = table(500)
STRANGE = {
    "no rows": table(0),
    "one row": table(1),
    "texts": WHOLE.astype(str),
    "objects": WHOLE.astype(object),
    "integers": WHOLE.assign(age=WHOLE["age"].astype("int8"), income=1),
    "booleans": WHOLE.assign(income=True),
    "another codebook": WHOLE.assign(age=WHOLE["age"] * 365, sex="female"),
    "nothing known": WHOLE.assign(age=np.nan, income=np.inf, sex=None),
}


def released(fit):
    release = fit.release
    return release.values if hasattr(release, "values") else release.second


@pytest.mark.parametrize(
    ("verb", "protocol"),
    [
        (verb, protocol)
        for verb in VERBS
        for protocol in PROTOCOLS
        if protocol != "dpdispca" or verb in ("pca", "cov")
    ],
)
def test_no_row_stops_a_release_or_shows(verb, protocol):
    """Rows of other types and codebooks count by the declared rules at every site."""
    fit, formula = VERBS[verb]
    result = fit(formula, sites=STRANGE, protocol=protocol, **BUDGET)
    assert np.isfinite(released(result)).all()
    assert result.release.rows == sum(map(len, STRANGE.values()))
    assert f"8, protocol {protocol}" in str(result.summary())


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_not_as_declared_is_incomplete(kind):
    """With next to no noise: how many rows of a strange site count as complete."""
    words = {"codebook": CB, "budget": dp.ZCDP(1e12)}
    sites = {"strange": STRANGE[kind], "whole": WHOLE}
    values = dp.dp_table("~ sex", sites=sites, protocol="secure_sum", **words).release.values
    total = STRANGE[kind]["sex"].isin(["F", "M"]).sum()
    assert values[:2].sum() == pytest.approx(500 + total, abs=0.01)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("missing", ["age", "sex"])
def test_a_missing_column_is_named_with_its_site(protocol, missing):
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    sites = {"A": WHOLE, "Bergen": WHOLE.drop(columns=missing).copy()}
    with pytest.raises(FrameError, match=f"site 'Bergen'.*{missing}"):
        dp.dp_pca("~ age + sex", sites=sites, protocol=protocol, ledger=ledger, **BUDGET)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("retained", "columns", "message"),
    [(4, 2, "R=4 .* to 3"), (1, 2, "R=1 .* from 2"), (0, 1, "R=0"), (2.0, 2, "R=2.0")],
)
def test_a_root_of_too_many_or_too_few_columns_is_refused(retained, columns, message, tmp_path):
    protocol = dp.sites.DPdisPCA(R=retained)
    words = {"protocol": protocol, "ncomp": columns, **BUDGET}
    with pytest.raises(ArgumentError, match=message):
        dp.dp_pca("~ age + income + sex", sites={"A": WHOLE, "B": WHOLE.copy()}, **words)
    with pytest.raises(ArgumentError, match=message):
        dp.site_release(
            "~ age + income + sex",
            WHOLE,
            tmp_path / "a.json",
            site="A",
            session="s",
            ledger=dp.Ledger(eps=0.1),
            **words,
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("protocol", ["full", "dpdispca", "cape", "secure_sum"])
def test_files_of_sites_without_rows_combine(protocol, tmp_path):
    sites = {"none": table(0), "one": table(1)}
    cards = []
    if protocol in ("cape", "secure_sum"):
        cards = [dp.site_key(site, tmp_path / f"{site}.key") for site in sites]
    files = [
        dp.site_release(
            "~ age + income",
            rows,
            tmp_path / f"{site}.json",
            site=site,
            session="s",
            protocol=protocol,
            key=tmp_path / f"{site}.key" if cards else None,
            cards=cards,
            ledger=dp.Ledger.open(tmp_path / f"{site}.ledger", eps=1.0, delta=1e-6, new=True),
            **BUDGET,
        )
        for site, rows in sites.items()
    ]
    fit = dp.combine(files)
    assert np.isfinite(fit.release.second).all()
    assert fit.nobs == 1
    assert "kept by each site" in str(fit.summary())


def test_bytes_of_a_file_are_those_it_holds(tmp_path):
    for protocol, word in (("full", 16), ("dpdispca", 8)):
        file = tmp_path / f"{protocol}.json"
        words = {"site": "A", "session": "s", "protocol": protocol, **BUDGET}
        dp.site_release("~ age + income", WHOLE, file, **words)
        shared = dp.combine([file]).release.shared
        assert shared.size == word * shared.numbers


def spoilt(card, change):
    """A card without one of its parts, cut short, or of a key that agrees on nothing."""
    plain = json.loads(card)
    if change == "length":
        return json.dumps(plain | {"public": plain["public"][:-3]})
    if change == "order":
        return json.dumps(plain | {"public": "00" * 32})
    del plain[change]
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("public", "lacks a part of a card"),
        ("site", "lacks a part of a card"),
        ("length", "lacks a part of a card"),
        ("order", "is not an X25519 key"),
    ],
)
def test_a_spoilt_card_is_refused(change, message, tmp_path):
    cards = [dp.site_key(site, tmp_path / f"{site}.key") for site in "AB"]
    cards[1].write_text(spoilt(cards[1].read_text("utf-8"), change), "utf-8")
    with pytest.raises(FrameError, match=message):
        dp.site_release(
            "~ age",
            WHOLE,
            tmp_path / "a.json",
            site="A",
            session="s",
            protocol="secure_sum",
            key=tmp_path / "A.key",
            cards=cards,
            ledger=dp.Ledger.open(tmp_path / "A.ledger", eps=1.0, delta=1e-6, new=True),
            **BUDGET,
        )
    assert "private" in (tmp_path / "A.key").read_text("utf-8")
    assert not (tmp_path / "a.json").exists()


def test_a_mean_far_from_zero_leaves_the_leading_part_to_the_spread():
    """Where means are taken off, a root of one column holds the widest direction, not the mean."""
    rng = np.random.default_rng(1)
    words = {"codebook": dp.codebook.uniform(["a", "b"], (-1, 1)), "budget": dp.ZCDP(1e12)}
    sites = {
        name: {"a": rng.normal(0, 0.2, 4_000), "b": rng.normal(0.8, 0.05, 4_000)} for name in "XYZ"
    }
    fit = dp.dp_pca("~ a + b", sites=sites, protocol="dpdispca", ncomp=1, **words)
    assert abs(fit.loadings.to_numpy()[0, 0]) > 0.99
    assert fit.eigenvals.to_numpy()[0] == pytest.approx(0.2**2, rel=0.1)
    assert fit.center.to_numpy() == pytest.approx([0.0, 0.8], abs=0.01)


@pytest.mark.parametrize("kind", [dp.sites.Full, dp.sites.DPdisPCA])
def test_where_sites_count_alike_one_without_rows_is_none(kind):
    rows = {"A": table(40), "B": table(20)}
    results = []
    for sites in (rows, rows | {"C": table(0)}):
        with dp.simulation(seed=1):
            fit = dp.dp_cov("~ age", sites=sites, protocol=kind(weights="sites"), **BUDGET)
        results.append(fit.release.second.item())
    assert results[0] == results[1]
