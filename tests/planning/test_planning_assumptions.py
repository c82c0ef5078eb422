"""Guessed rows are what was said of them, and the same at every call."""

import numpy as np
import pandas as pd
import pytest
from folded import each
from scipy.stats import norm

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError
from dpmodels.models.assumed_rows import LAWS, assumed_rows

BOOK = dp.codebook(
    wage=(0, 80),
    visits=dp.Integer(0, 30),
    since=dp.Date("2001-01-01", "2020-12-31"),
    sex=["F", "M"],
    edu=["low", "mid", "high"],
)


@pytest.mark.parametrize("law", list(LAWS))
def test_rows_lie_where_the_codebook_says(law):
    for rows in (assumed_rows(BOOK, law).block(999), assumed_rows(BOOK, law).rows(999)):
        assert list(rows) == list(BOOK)
        assert rows["wage"].between(0, 80).all()
        assert (rows["visits"] == rows["visits"].round()).all()
        assert rows["since"].between("2001-01-01", "2020-12-31").all()
        assert set(rows["edu"]) == {"low", "mid", "high"}
    # Every row of every law is complete to a verb.
    with dp.simulation(seed=1):
        fit = dp.dp_table("~ sex + edu", rows, codebook=BOOK, eps=1e6)
    assert fit.nincomplete == 0


@each("law", list(LAWS))
def test_laws_have_mean_0_and_variance_1(law):
    places = (np.arange(200_000) + 0.5) / 200_000
    quantiles = LAWS[law].quantiles(places)
    assert abs(quantiles.mean()) < 1e-3
    assert abs(quantiles.std() - 1) < 0.02


@each(
    "law, place, share",
    [
        ("normal", norm.cdf(-3), 0.0),
        ("normal", norm.cdf(3), 1.0),
        ("uniform", 0.0, 0.0),
        ("uniform", 1.0, 1.0),
        ("skewed", 0.0, 0.0),
        ("zeros", 0.0, 0.0),
        ("zeros", 0.5, 0.0),
        ("tails", 0.5, 0.5),
        ("narrow", norm.cdf(-3), 0.45),
        ("narrow", norm.cdf(3), 0.55),
    ],
)
def test_laws_meet_their_bounds_as_their_descriptions_say(law, place, share):
    """From 0, the lower bound, to 1, the upper."""
    quantile = LAWS[law].mean + LAWS[law].sd * LAWS[law].quantiles(np.array(place))
    assert quantile == pytest.approx(share, abs=1e-9)


def test_shares_means_and_sds_are_what_was_said():
    guess = assumed_rows(BOOK, {"wage": ("normal", 30, 5), "edu": [0.5, 0.3, 0.2]})
    rows = guess.block(1000)
    assert rows["edu"].value_counts().to_dict() == {"low": 500, "mid": 300, "high": 200}
    assert abs(rows["wage"].mean() - 30) < 0.01
    assert abs(rows["wage"].std() - 5) < 0.05
    assert "wage normal, mean 30, sd 5" in guess.about
    assert "0.5 : 0.3 : 0.2" in guess.about
    assert assumed_rows(BOOK, "normal", ["edu"]).about == "levels equally common"


def test_blocks_are_spread_over_pairs_of_variables():
    """Groups have the same law far closer than chance: sds of random halves differ by 4 %."""
    rows = assumed_rows(BOOK, "skewed").block(2048)
    for name, level in (("sex", "F"), ("edu", "low"), ("edu", "high")):
        wages = rows["wage"][rows[name] == level]
        assert wages.std() == pytest.approx(rows["wage"].std(), rel=0.02)
        assert wages.mean() == pytest.approx(rows["wage"].mean(), rel=0.005)
    assert abs(np.corrcoef(rows["wage"], rows["visits"])[0, 1]) < 0.005


def test_calls_repeat_and_draws_differ():
    guess = assumed_rows(BOOK, "skewed")
    pd.testing.assert_frame_equal(guess.rows(50), guess.rows(50))
    pd.testing.assert_frame_equal(guess.block(50), guess.block(50))
    assert (guess.rows(50)["wage"] != guess.rows(50, draw=1)["wage"]).any()


def test_rows_of_a_sample_are_drawn_whole_and_none_is_shown():
    sample = pd.DataFrame({"wage": [17.25, 63.5], "sex": ["F", "M"], "other": [1, 2]})
    guess = assumed_rows(BOOK, sample, ["wage", "sex"])
    rows = guess.rows(100)
    assert set(zip(rows["wage"], rows["sex"], strict=True)) == {(17.25, "F"), (63.5, "M")}
    assert len(guess.block(100)) == 2
    assert "17.25" not in repr(guess)
    assert "public sample of 2" in repr(guess)


def test_rows_of_persons_are_each_its_own():
    rows = assumed_rows(dp.codebook(wage=(0, 80), person="id")).rows(9)
    assert rows["id"].is_unique


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("shape", "reported"),
    [
        ("gaussian", 'expected "normal"'),
        ({"age": "normal"}, "does not declare"),
        ({"sex": "normal"}, "2 shares"),
        ({"sex": [0.5, 0.6]}, "2 shares"),
        ({"wage": ("normal", 3)}, "a mean and a positive sd"),
        ({"wage": ("normal", 3, 0)}, "a mean and a positive sd"),
        ({"since": ("normal", 3, 1)}, "dates take no mean and sd"),
        (17, 'shape="normal"'),
        (pd.DataFrame({"wage": [1.0]}), "lacks the column 'visits'"),
        (pd.DataFrame({name: [] for name in BOOK}), "has no rows"),
    ],
)
def test_what_is_no_guess_is_refused(shape, reported):
    with pytest.raises(ArgumentError, match=reported):
        assumed_rows(BOOK, shape)
    with pytest.raises(CodebookError, match="declare it first"):
        assumed_rows(BOOK, "normal", ["age"])
