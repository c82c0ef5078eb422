"""What is held of a plane: labels, tidy rows, saved and read, pictures and reports."""

import forged
import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, DPModelsError
from dpmodels.results.bins import Ranges

BOOK = dp.codebook(a=(0, 4), b=dp.Numeric(0, 9, step=1), h=["p", "q"])
RNG = np.random.default_rng(4)
ROWS = {
    "a": RNG.uniform(0, 4, 900),
    "b": RNG.integers(0, 10, 900),
    "h": RNG.choice(["p", "q"], 900),
}


def fit(formula="~ a + b", **words):
    words = {"eps": 5.0, "breaks": (40, 5), "mechanism": "grid"} | words
    with dp.simulation(seed=1):
        return dp.dp_hist(formula, ROWS, codebook=BOOK, **words)


@pytest.mark.parametrize("mechanism", ["grid", "flat"])
@pytest.mark.parametrize("formula", ["~ a + b", "a + b ~ h"])
def test_tidy_has_a_row_a_cell_that_agrees_with_the_arrays(formula, mechanism):
    plane = fit(formula, mechanism=mechanism)
    table = plane.tidy()
    assert table["estimate"].tolist() == plane.counts.to_numpy().ravel().tolist()
    assert table["released"].to_numpy() == pytest.approx(plane.released.to_numpy().ravel())
    assert (table["noise_low"] <= np.maximum(table["released"], 0)).all()
    assert (table["conf_low"] <= table["conf_high"]).all()
    assert table["a_low"].iloc[0] == 0.0
    assert table["b_high"].iloc[4] == 9
    groups = 2 if "h" in formula else 1
    assert len(table) == groups * 40 * 5 == len(plane.noise_int())
    estimates = plane.between((0.0, table["a_high"][0]), (0, table["b_high"][0]))
    assert estimates["released"][0] == pytest.approx(table["released"][0])
    assert estimates["noise_sd"][0] == pytest.approx(table["noise_sd"][0])


@pytest.mark.parametrize("mechanism", ["grid", "flat"])
def test_what_is_saved_comes_back_and_fits_its_request(tmp_path, mechanism):
    plane = fit("a + b ~ h", mechanism=mechanism)
    plane.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    assert again.counts.equals(plane.counts)
    assert str(again.summary()) == str(plane.summary())
    estimates = again.between((0, 2), (0, 4), group="p")
    assert estimates["count"][0] == plane.between((0, 2), (0, 4), group="p")["count"][0]
    for breaks, match in (((41, 5), "shape"), (((0, 5, 9), 5), "outside the declared range")):
        with pytest.raises(DPModelsError, match=match):
            forged.with_request(plane, options={"breaks": breaks})


def test_blocks_are_those_of_a_level_and_add_up():
    plane = fit(breaks=(40, 5), mechanism=dp.mechanisms.Grid(side=4))
    for limits in ((12, 6), (4, 4), (2, 2)):
        runs = plane.blocks(limits)
        assert all(len(run.start) <= room for run, room in zip(runs, limits, strict=True))
        assert plane.sums(runs).sum() == pytest.approx(plane.released.to_numpy().sum())
        assert plane.sums(runs, whole=True).sum() == plane.ncomplete
    # Sums over released blocks have about the noise of one count.
    assert plane.noise_width(plane.blocks((4, 4))) < 1.5 * plane.release.noise_sd


def test_the_report_has_totals_and_the_noise_of_cells_and_blocks():
    text = str(fit().summary())
    for heading in (
        "a by b",
        "Total",
        "Cell noise",
        "Block noise",
        "40 by 5 cells, shown in blocks",
    ):
        assert heading in text
    assert "Block noise" not in str(fit(breaks=(4, 5)).summary())
    assert max(map(len, text.splitlines())) <= 110
    grouped = str(fit("a + b ~ h").summary())
    assert "p: a by b" in grouped
    assert "q: a by b" in grouped


def test_groups_are_named_and_others_refused():
    plane = fit("a + b ~ h")
    estimates = plane.between((0, 2), (0, 4))
    assert estimates["h"].tolist() == ["p", "q"]
    assert plane.between((0, 2), (0, 4), group="q")["count"][0] == estimates["count"][1]
    with pytest.raises(ArgumentError, match="group='r' is not one"):
        plane.between((0, 2), (0, 4), group="r")
    with pytest.raises(ArgumentError, match="has no groups"):
        fit().between((0, 2), (0, 4), group="p")


def test_a_picture_has_the_ends_of_the_bins_and_blank_cells(monkeypatch):
    pytest.importorskip("matplotlib")
    ax = fit(breaks=(8, 5)).plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert ax.get_xlim() == (0.0, 4.0)
    assert ax.get_ylim() == (-0.5, 9.5)
    cells = np.ma.filled(ax.collections[0].get_array().astype(float), np.nan)
    assert np.nansum(cells) == pytest.approx(900, rel=0.3)
    faint = fit(breaks=(8, 5), eps=0.001).plot()
    assert np.isnan(np.ma.filled(faint.collections[0].get_array().astype(float), np.nan)).all()
    from matplotlib import pyplot as plt

    plt.close("all")


def test_ranges_are_aligned_where_both_of_their_ends_are_breaks():
    for start, stop, is_aligned in ((0, 3, True), (1, 4, True), (0.5, 3, False), (1, 2.25, False)):
        assert Ranges(np.array([start, 0.0]), np.array([stop, 5.0])).aligned == is_aligned
