"""dp_hist of two numbers: cells, rectangles, groups, what is refused, what is chosen."""

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.errors import ArgumentError, CodebookError, FormulaError
from dpmodels.models.table import MOST_CELLS, dp_hist
from dpmodels.results.plane import PlaneResult
from tests.mines import Mine

BOOK = dp.codebook(
    lon=(-10, 10), lat=(0, 8), age=dp.Numeric(0, 9, step=1), sex=["F", "M"], g=["u", "v", "w"]
)


def rows(count=3_000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "lon": np.append(rng.normal(2, 1, count - count // 3), rng.uniform(-9, 9, count // 3)),
        "lat": rng.gamma(2.0, 1.0, count),
        "age": rng.integers(0, 10, count),
        "sex": rng.choice(["F", "M"], count),
        "g": rng.choice(["u", "v", "w"], count),
    }


def fit(formula="~ lon + lat", data=None, **words):
    words = {"eps": 1.0, "breaks": (8, 6)} | words
    return dp_hist(formula, rows() if data is None else data, codebook=BOOK, **words)


@pytest.mark.parametrize("mechanism", ["flat", "grid", "geometric", dp.mechanisms.Grid(side=2)])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_huge_budget_gives_numpys_histogram_by_group(mechanism, relation):
    data = rows()
    result = fit("lon + lat ~ sex", data, eps=1e9, mechanism=mechanism, adjacency=relation)
    assert isinstance(result, PlaneResult)
    assert result.counts.dims == result.released.dims == ("sex", "lon", "lat")
    ends = np.linspace(-10, 10, 9), np.linspace(0, 8, 7)
    assert [result.along.tolist(), result.across.tolist()] == [end.tolist() for end in ends]
    lat = np.minimum(data["lat"], 8.0)
    for sex, cells in zip("FM", result.counts.to_numpy(), strict=True):
        is_of_sex = data["sex"] == sex
        expected, *_ = np.histogram2d(data["lon"][is_of_sex], lat[is_of_sex], ends)
        np.testing.assert_array_equal(cells, expected)
    assert result.released.to_numpy() == pytest.approx(result.counts.to_numpy())


def test_breaks_are_one_for_both_or_a_pair_of_numbers_and_ends():
    data = rows()
    assert fit(breaks=5).shape == (5, 5)
    result = fit("~ age + lat", data, breaks=(5, [0, 1, 2.5, 8]), eps=1e9)
    assert result.shape == (5, 3)
    assert result.counts.to_numpy().sum() == len(data["lat"])
    ends = result.tidy().iloc[:3]
    assert ends["age_low"].tolist() == [0, 0, 0]
    assert ends["age_high"].tolist() == [1, 1, 1]
    assert ends["lat_high"].tolist() == [1, 2.5, 8]


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        ({"breaks": (8,)}, ArgumentError, "two numbers; write a number of bins for both"),
        ({"breaks": (8, 8, 8)}, ArgumentError, "a sequence of 3"),
        ({"breaks": "8"}, ArgumentError, "two numbers"),
        ({"breaks": np.array(8)}, ArgumentError, "two numbers"),
        ({"breaks": (np.array(8), 8)}, ArgumentError, "a number of bins or their ends"),
        ({"breaks": 1}, ArgumentError, "2 to"),
        ({"breaks": (1, 8)}, ArgumentError, "2 to"),
        ({"breaks": (8, [0, 8])}, ArgumentError, "three ends or more"),
        ({"breaks": (8, [0, 4, 9])}, ArgumentError, "outside the declared range"),
        ({"breaks": (4_000, 2_500)}, ArgumentError, "10,000,000 cells; at most 5,000,000"),
        ({"breaks": (10**9, 10**9)}, ArgumentError, "at most 5,000,000"),
        ({"mechanism": "tree"}, ArgumentError, "'grid'"),
        ({"mechanism": "grid", "formula": "~ lon", "breaks": 8}, ArgumentError, "'tree'"),
        ({"formula": "~ lon + sex"}, FormulaError, "write 'y ~ group'"),
        ({"formula": "~ sex + g"}, FormulaError, "one variable"),
        ({"formula": "~ lon + lat + age"}, FormulaError, "one variable"),
        ({"formula": "~ lon + income"}, CodebookError, "income"),
    ],
)
def test_refusals_come_before_a_row_is_read(words, error, match):
    mines = {name: Mine() for name in BOOK}
    with pytest.raises(error, match=match):
        fit(**({"formula": "~ lon + lat", "data": mines} | words))


def test_groups_count_against_the_room_there_is():
    with pytest.raises(ArgumentError, match="of 6 groups"):
        fit("lon + lat ~ sex + g", breaks=(1_000, MOST_CELLS // 5_000))


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ((3, 1), (0, 4), "no width"),
        ((1, 1), (0, 4), "no width"),
        ((-11, 1), (0, 4), "outside the bins"),
        ((0, 1), (0, 8.5), "outside the bins"),
        (3, (0, 4), "expected a pair"),
        ((0, 1, 2), (0, 4), "expected a pair"),
        (("a", 1), (0, 4), "lo="),
        (([0, 1], [1, 2]), ([0, 1, 2], [1, 2, 3]), "2 ranges along one axis and 3"),
    ],
)
def test_rectangles_outside_or_reversed_are_refused(first, second, match):
    with pytest.raises(ArgumentError, match=match):
        fit().between(first, second)


@pytest.mark.product
@pytest.mark.parametrize("budget", [{"eps": 1.0}, {"eps": None, "budget": dp.ZCDP(0.3)}], ids=str)
@pytest.mark.parametrize("mechanism", ["flat", dp.mechanisms.Grid(side=3)], ids=["flat", "grid"])
def test_intervals_of_rectangles_hold_as_often_as_stated(mechanism, budget):
    """Binomial bounds with a false-alarm rate of 1e-7 each, of 300 rectangles in 30 releases.

    Rectangles of one release share noise: as if there were a third of them.
    """
    rng, hits, n_intervals = np.random.default_rng(5), np.zeros(2), 0
    first, second = (np.sort(rng.choice(13, (2, 10, 2))[0], axis=1) for _ in range(2))
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a[0] < a[1] and b[0] < b[1]]
    lo, hi = (np.array([[a[i], b[i]] for a, b in pairs]) / 12 for i in (0, 1))
    shares = np.prod(hi - lo, axis=1)
    with dp.simulation(seed=2):
        for _ in range(30):
            data = {"lon": rng.uniform(-10, 10, 500), "lat": rng.uniform(0, 8, 500)}
            result = fit(data=data, breaks=(12, 12), mechanism=mechanism, **budget)
            ends = [(edge[:, 0] * 20 - 10, edge[:, 1] * 8) for edge in (lo, hi)]
            intervals = result.between(*zip(*ends, strict=True))
            inside = [
                (
                    (data["lon"] > x0)
                    & (data["lon"] <= x1)
                    & (data["lat"] > y0)
                    & (data["lat"] <= y1)
                )
                for (x0, x1), (y0, y1) in zip(
                    zip(ends[0][0], ends[1][0], strict=True),
                    zip(ends[0][1], ends[1][1], strict=True),
                    strict=True,
                )
            ]
            exact = np.sum(inside, axis=1)
            hits[0] += (
                (intervals["noise_low"] <= exact) & (exact <= intervals["noise_high"])
            ).sum()
            hits[1] += (
                (intervals["conf_low"] <= shares) & (shares <= intervals["conf_high"])
            ).sum()
            n_intervals += len(pairs)
    third = n_intervals // 3
    low = stats.binom.ppf(1e-7, third, 0.95) / third
    assert (hits / n_intervals >= low).all()
    assert hits[0] / n_intervals < 1 or budget["eps"] is None or mechanism != "flat"


def test_a_rectangle_that_cuts_cells_has_an_interval_that_holds_all_and_none_of_them():
    data = {"lon": [2.4] * 1_000, "lat": [4.1] * 1_000}
    result = fit(data=data, breaks=(4, 4), mechanism="grid")
    row = result.between((0, 2), (4, 8)).iloc[0]
    assert row["noise_low"] < 100
    assert row["noise_high"] > 990
    estimates = result.between(([0, -10], [5, 0]), (4, 8))
    assert estimates["count"].tolist() == pytest.approx([1_000, 0], abs=60)


@pytest.mark.product
def test_of_many_cells_blocks_are_chosen_and_of_few_the_cells_alone():
    data = rows(500)
    fine, few = (fit(data=data, breaks=n, adjacency="add-remove") for n in (1_024, 8))
    assert fine.release.info.name == "grid"
    assert "in the mean rectangle" in fine.call.reason
    assert few.release.info.name == "geometric"
    concentrated = fit(data=data, breaks=64, eps=None, budget=dp.ZCDP(0.5))
    assert concentrated.release.info.name == "partition"
    crowded = fit(data=rows(40_000), breaks=64, eps=None, budget=dp.ZCDP(0.5))
    assert crowded.release.info.name == "grid"


def test_one_person_s_rows_are_paid_for_together():
    data = rows(2_000) | {"who": np.arange(2_000) // 4}
    with dp.simulation(seed=1):
        plane = fit(data=data, mechanism="grid")
        four = fit(data=data, mechanism="grid", person="who", rows=4)
        mean = fit(data=data, mechanism="grid", person="who", rows="mean")
    assert four.release.noise_sd == pytest.approx(4 * plane.release.noise_sd, rel=0.02)
    assert mean.nobs == 500
    assert mean.ncomplete == pytest.approx(500, abs=40)


@pytest.mark.slow
def test_four_million_cells_take_a_moment():
    result = fit(breaks=2_048, data=rows(2_000))
    assert result.counts.shape == (2_048, 2_048)
    assert "2,048 by 2,048 cells" in str(result.summary())


def test_whole_counts_of_a_crowd_may_lie_outside_their_interval_and_it_is_said():
    """What cells that cannot go below 0 keep above it is taken from the crowd."""
    rng = np.random.default_rng(1)
    crowd = {"lon": rng.uniform(-2, 2, 20_000), "lat": rng.uniform(3.2, 4.8, 20_000)}
    with dp.simulation(seed=1):
        result = fit(data=crowd, breaks=(125, 125), eps=0.1, mechanism="grid")
    inside = result.between((-2, 2), (3.2, 4.8)).iloc[0]
    assert inside["count"] < inside["noise_low"] < 20_000 < inside["noise_high"]
    text = " ".join(str(result.summary(notes="all")).split())
    assert "a printed count may lie outside its interval" in text
