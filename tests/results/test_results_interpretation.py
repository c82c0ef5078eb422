"""What a reading holds, shows and prints."""

import math
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError

READ = dp.reading([dp.PureDP(1.0), dp.ApproxDP(1.0, 1e-6), dp.ZCDP(0.5)])


def test_the_tidy_table_has_every_number_of_the_table():
    tidy = READ.tidy()
    assert tidy.columns.tolist() == ["guarantee", "units", "protected", "reading", "value"]
    wide = tidy.pivot_table("value", ["guarantee", "units"], "reading", dropna=False)
    table = READ.table.set_index(["guarantee", "units"])
    for name in ("power", "posterior", "odds", "advantage"):
        np.testing.assert_array_equal(wide[name].reindex(table.index), table[name])


def test_the_curves_of_the_frame_are_those_of_the_power():
    curve = READ.trade_off([0.0, READ.alpha, 1.0])
    assert curve.loc[READ.alpha].tolist() == (1 - READ.table["power"][:3]).tolist()
    np.testing.assert_allclose(curve.iloc[0], [1.0, 1 - 1e-6, 1.0])
    for alarms in ([-0.1], [1.1], [math.nan], ["a"], object()):
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            READ.trade_off(alarms)


def test_only_what_a_guarantee_has_is_said_of_it():
    first, two = READ.table.query("units == 1"), READ.table.query("units == 2")
    assert first["lie"].notna().tolist() == [True, True, False]
    assert two["lie"].isna().all()
    assert first["holds"].tolist() == [1.0, 0.95, 0.95]


@pytest.mark.parametrize("how", ["as_text", "as_html", "as_latex", "as_markdown"])
def test_every_format_says_what_it_is_of_and_what_it_is_not(how):
    printed = " ".join(getattr(READ.summary(notes="all"), how)().split())
    for words in (
        "0.136",
        "Membership advantage",
        "smoking",
        "0.462",
        "no guarantee prevents them",
    ):
        assert words in printed
    assert re.search(r"2\.72 \S?\*", printed)
    assert READ._repr_html_() == READ.summary().as_html()
    assert repr(READ) == "<ReadingResult of eps = 1, eps = 1, delta = 1e-06, rho = 0.5 (zCDP)>"


def test_a_report_marks_what_holds_with_a_probability_and_says_where_it_does_not_add_up():
    assert "*" not in str(dp.reading(eps=1.0).summary())
    assert "no bound *" in str(dp.reading(eps=1.0, delta=0.1).summary())
    ledger = dp.Ledger(eps=1.0)
    cb = dp.codebook(g=["u", "v"])
    dp.dp_table("~ g", {"g": ["u", "v"] * 9}, codebook=cb, eps=0.5, ledger=ledger)
    assert "depended on earlier answers" in str(dp.reading(ledger).summary())


def test_the_picture_has_a_curve_and_a_point_for_each_guarantee():
    ax = READ.plot()
    coins, *lines = ax.lines
    assert np.asarray(coins.get_xdata()).tolist() == [0, 1]
    marked = [line for line in lines if line.get_marker() == "o"]
    assert [line.get_ydata()[0] for line in marked] == (1 - READ.table["power"][:3]).tolist()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["coin-flipping", *READ.labels]
    plt.close(ax.figure)
