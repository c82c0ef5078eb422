"""What a selection holds, prints and draws."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError, NotAvailable
from dpmodels.results.estimate_table import COLUMNS
from dpmodels.results.store import result_bytes

BOOK = dp.codebook(
    t=dp.Categorical(["Bonn", "Rust", "Ulm"], label="Town"), u=[0, 1], y=(0, 4), a=(0, 1)
)
RNG = np.random.default_rng(3)
A = RNG.choice([0.0, 1.0], 900)
ROWS = {
    "t": ["Bonn"] * 200 + ["Rust"] * 600 + ["Ulm"] * 100,
    "u": [0, 1] * 450,
    "a": A,
    "y": A + RNG.uniform(0, 2, 900),
}
WORDS = {"codebook": BOOK, "eps": 20.0}


def test_levels_come_as_they_were_declared_with_their_counts():
    fit = dp.dp_select("~ t:u", ROWS, k=3, **WORDS)
    assert fit.selected[0] in {("Rust", 0), ("Rust", 1)}
    assert fit.ncandidates == 6
    table = fit.tidy()
    assert table.columns[:3].tolist() == ["place", "t", "u"]
    assert table.place.tolist() == [1, 2, 3]
    assert (table.noise_low < table.estimate).all()
    assert fit.glance().loc[0, ["ncandidates", "nselected"]].tolist() == [6, 3]
    assert repr(fit).endswith("3 of 6, eps = 20>")
    assert dp.dp_select("~ t", ROWS, **WORDS).tidy().label.tolist() == ["Town"]


def test_the_report_tells_what_is_not_told():
    text = " ".join(str(dp.dp_select("~ t", ROWS, k=2, **WORDS).summary()).split())
    assert "How far the 2nd is above the 3rd is not known" in text
    assert "fresh noise" in text
    every = str(dp.dp_select("~ t", ROWS, k=3, **WORDS).summary())
    assert "How far" not in every


def test_names_alone_have_no_values():
    fit = dp.dp_select("~ t", ROWS, values=False, **WORDS)
    assert fit.tidy().columns.tolist() == ["place", "t", *COLUMNS, "label"]
    assert fit.tidy()["estimate"].isna().all()
    for ask in (lambda: fit.values, fit.noise_int, fit.plot, fit.above_next):
        with pytest.raises(NotAvailable, match="values=True"):
            ask()
    assert "1. Rust" in str(fit.summary())


def test_no_interval_is_of_the_population():
    fit = dp.dp_select("~ t", ROWS, **WORDS)
    with pytest.raises(NotAvailable, match="selected on the same rows"):
        fit.conf_int()


def test_columns_have_correlations_and_z():
    fit = dp.dp_select("y ~ a + t", ROWS, **WORDS | {"eps": 200.0})
    assert fit.selected == ("a",)
    exact = float(np.corrcoef(ROWS["a"], ROWS["y"])[0, 1])
    assert fit.values["a"] == pytest.approx(exact, abs=0.05)
    assert fit.noise_sd["a"] < 0.02
    z = dp.dp_select("y ~ a + t", ROWS, score="z", **WORDS | {"eps": 200.0})
    assert z.values["a"] == pytest.approx(30 * exact, abs=1.5)
    assert z.noise_int().lower["a"] < z.values["a"] < z.noise_int().upper["a"]
    assert "rank lower" in str(z.summary(notes="all"))


def test_the_report_of_columns_knows_the_public_number_of_rows_and_the_threshold():
    fit = dp.dp_select("y ~ a + t", ROWS, threshold=0.1, **WORDS)
    few_rows = replace(fit, release=replace(fit.release, count=960.0))
    text = " ".join(str(few_rows.summary(notes="all")).split())
    assert "Complete: 900 rows" in text
    assert "exceed the threshold less often" in text


def test_a_correlation_is_at_most_one_however_small_its_noisy_variances():
    fit = dp.dp_select("y ~ a + t", ROWS, **WORDS | {"eps": 200.0})
    release = fit.release
    lucky = replace(
        fit, release=replace(release, values=1.2 * np.sqrt(release.scatters * release.response))
    )
    assert lucky.values.tolist() == [1.0]
    assert lucky.noise_int().lower["a"] < 1


def test_a_threshold_that_nothing_is_above_prints():
    fit = dp.dp_select("~ t", ROWS, threshold=5000, **WORDS)
    assert fit.selected == ()
    assert fit.tidy().empty
    assert "(none found)" in str(fit.summary())
    with pytest.raises(NotAvailable, match="nothing was above"):
        fit.plot()


def test_bars_stand_in_the_order_of_the_names():
    fit = dp.dp_select("~ t", ROWS, k=2, **WORDS)
    ax = fit.plot()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["1. Rust", "2. Bonn"]
    assert [bar.get_width() for bar in ax.patches] == fit.values.tolist()
    assert ax.yaxis_inverted()


def test_values_that_are_all_lost_in_noise_have_no_picture():
    fit = dp.dp_select("y ~ a + t", ROWS, **WORDS)
    lost = replace(fit, release=replace(fit.release, scatters=0 * fit.release.scatters))
    assert lost.values.isna().all()
    with pytest.raises(NotAvailable, match="no value exceeds its noise"):
        lost.plot()


def again(fit, path):
    fit.save(path, overwrite=True)
    return dp.load(path)


def test_what_does_not_go_together_is_not_loaded(tmp_path):
    fit = dp.dp_select("y ~ a + t", ROWS, k=2, **WORDS)
    release = fit.release
    for changed in (
        {"places": (0, 0)},
        {"places": (0, 99)},
        {"places": (0,)},
        {"count": None},
        {"scatters": None},
    ):
        object.__setattr__(fit, "release", release.__class__(**{**vars(release), **changed}))
        with pytest.raises(FrameError):
            again(fit, tmp_path / "fit.nc")
    object.__setattr__(fit, "release", release)
    assert result_bytes(fit)


def test_gains_are_saved_with_the_coefficients_they_are_of(tmp_path):
    fit = dp.dp_select("y ~ a + t", ROWS, k=2, score="gain", **WORDS)
    loaded = again(fit, tmp_path / "fit.nc")
    assert str(loaded.summary()) == str(fit.summary())
    assert loaded.cumulative().equals(fit.cumulative())
    assert fit.plot().get_xlabel() == "gain of terms with y, noisy"
    object.__setattr__(fit, "release", replace(fit.release, slopes=None))
    with pytest.raises(FrameError, match="coefficients"):
        again(fit, tmp_path / "fit.nc")
    alone = dp.dp_select("y ~ a + t", ROWS, k=2, score="gain", values=False, **WORDS)
    assert again(alone, tmp_path / "alone.nc").selected == alone.selected


def test_a_session_and_persons_select():
    rows = pd.DataFrame(ROWS).assign(id=np.arange(900) // 3)
    session = dp.session(rows, BOOK, eps=30.0, person="id", rows=3)
    fit = session.select("~ t", k=1, eps=10.0)
    assert fit.selected == ("Rust",)
    assert sum(event.eps for event in fit.release.events if hasattr(event, "eps")) > 5
    assert session.select("y ~ a + t", score="gain", eps=10.0).ncandidates == 3


def test_sites_rank_levels_by_counts_that_they_see():
    sites = {"north": ROWS, "south": deepcopy(ROWS)}
    words = {"sites": sites, "codebook": BOOK, "eps": 1.0, "delta": 1e-6}
    with pytest.raises(dp.errors.ArgumentError, match="pooled"):
        dp.dp_select("~ t", protocol="full", **words)
    fit = dp.dp_select("~ t", protocol="secure_sum", **words)
    assert "of other candidates only the sites and the aggregator saw noisy counts" in " ".join(
        str(fit.summary()).split()
    )
    fit = dp.dp_select("~ t", sites=sites, protocol="pooled", **WORDS)
    assert fit.values.iloc[0] == pytest.approx(1200, abs=5)
