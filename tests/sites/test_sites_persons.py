"""Persons whose rows lie at several sites: each site's its own, under every protocol."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError

BOOK = dp.codebook(x=(0, 1))


def site(ids, seed):
    result = np.repeat(ids, 5)
    return pd.DataFrame({"id": result, "x": np.random.default_rng(seed).uniform(0, 1, len(result))})


SITES = {
    "A": site(np.arange(60), 1),
    "B": site(np.arange(60, 130), 2),
    "C": site(np.zeros(0, int), 3),
    "D": pd.DataFrame({"id": [None] * 9, "x": [0.5] * 9}),
}
WORDS = {"codebook": BOOK, "person": "id", "rows": 3, "subset": "x < 0.8"}
BIG = {"budget": dp.ZCDP(1e9)}


@pytest.mark.parametrize("protocol", ["pooled", "full", "cape", "secure_sum"])
def test_sites_hold_the_persons_of_one_table(protocol):
    total = pd.concat(SITES.values())
    # All rows of a person count, so that none is drawn.
    words = {**WORDS, **BIG, "rows": 5}
    mean_fit = dp.dp_mean("~ x", total, **words)
    fit = dp.dp_mean("~ x", sites=SITES, protocol=protocol, **words)
    assert fit.params.item() == pytest.approx(mean_fit.params.item(), abs=1e-3)
    assert fit.release.rows == mean_fit.release.rows == 5 * 130
    assert fit.release.adjacency.unit == "one person (at most 5 rows)"
    assert "all rows of a person: a person at two sites counts twice" in " ".join(
        str(fit.summary(notes="all")).split()
    )


def letters(folder, protocol, **words):
    keyed, cards = protocol == "secure_sum", []
    if keyed:
        cards = [dp.site_key(name, folder / f"{name}.key") for name in SITES]
    for name, data in SITES.items():
        values = {"key": folder / f"{name}.key", "cards": cards} if keyed else {}
        if keyed:
            unit = {"eps": 2.0, "delta": 1e-6, "person": "id", "rows": 3}
            values["ledger"] = dp.Ledger.open(folder / f"{name}.ledger", **unit, new=True)
        path = folder / f"{name}.json"
        values |= {**WORDS, **words.get(name, words.get("all", {}))}
        yield dp.site_release(
            "~ x", data, path, site=name, session="s", protocol=protocol, verb="mean", **values
        )


@pytest.mark.parametrize("protocol", ["full", "secure_sum"])
def test_letters_state_persons_and_what_they_cost(protocol, tmp_path):
    files = list(letters(tmp_path, protocol, all={"eps": 2.0, "delta": 1e-6}))
    release = dp.combine(files).release
    at_once = dp.dp_mean("~ x", sites=SITES, protocol=protocol, eps=2.0, delta=1e-6, **WORDS)
    for word in ("adjacency", "guarantee", "events", "subset", "rows"):
        assert getattr(release, word) == getattr(at_once.release, word)


@pytest.mark.parametrize("second", [{"rows": 4}, {"person": False}, {"subset": "x < 0.7"}])
def test_sites_that_protect_others_do_not_go_together(second, tmp_path):
    files = list(letters(tmp_path, "full", all=BIG, B={**BIG, **second}))
    with pytest.raises(FrameError, match=r"adjacency|subset"):
        dp.combine(files)


def test_a_site_without_the_column_is_named():
    broken = {**SITES, "B": SITES["B"].drop(columns="id")}
    with pytest.raises(FrameError, match=r"site 'B'.*'id'"):
        dp.dp_mean("~ x", sites=broken, protocol="pooled", **WORDS, **BIG)


def test_words_of_persons_are_refused_before_a_row(tmp_path):
    with pytest.raises(ArgumentError, match="rows=0"):
        next(letters(tmp_path, "full", all={**BIG, "rows": 0}))
