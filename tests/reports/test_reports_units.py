"""Every note that names a unit of protection names the one that is protected."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.disclosures.document import neighbours
from dpmodels.privacy import Adjacency, ApproxDP, GaussianEvent, LaplaceEvent
from dpmodels.report import Report
from dpmodels.reports import header, hist
from dpmodels.results.call import protected

ROW = Adjacency("replace")
ROWS = Adjacency("replace", 3)
PERSON = Adjacency("replace", "mean", "id")
TWO = Adjacency("replace", 2, "id")
ADDED = Adjacency("add-remove")
ADDED_PERSON = Adjacency("add-remove", "mean", "id")
BOOK = dp.codebook(y=(0, 1), x=(0, 1), g=["u", "v"])


def panel(n=900):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=n)
    y = np.clip(0.3 + 0.4 * x + rng.normal(0, 0.1, n), 0, 1)
    return pd.DataFrame({"x": x, "y": y, "g": rng.choice(["u", "v"], n), "id": np.arange(n) // 3})


def printed(fit):
    return " ".join(fit.summary(notes="all").as_text().split())


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (ROW, "one row is replaced by any other. The number of rows is public and not protected."),
        (ROWS, "any 3 rows (one person's) is replaced by any other. The number of rows is public"),
        (PERSON, "one person (all rows) is replaced by any other. The number of persons is public"),
        (TWO, "one person (at most 2 rows) is replaced by any other. The number of persons is pub"),
        (ADDED, "one row is added or removed. The number of rows is protected too."),
        (ADDED_PERSON, "one person (all rows) is added or removed. The number of persons is prot"),
    ],
    ids=str,
)
def test_a_disclosure_says_which_tables_are_neighbours(relation, text):
    sentence = neighbours(relation)
    assert sentence.startswith(f"Tables are neighbours if {text}")
    assert ("The column 'id' identifies the person" in sentence) == (relation.person is not None)


@pytest.mark.parametrize(
    ("relation", "rows", "text"),
    [
        (ROW, 600, "600 (public)"),
        (ROWS, 600, "600 (public)"),
        (PERSON, 600, "600 persons (public)"),
        (TWO, 600, "300 persons (public), at most 2 rows each"),
        (ADDED, None, "private"),
        (ADDED_PERSON, None, "private"),
    ],
    ids=str,
)
def test_observations_are_rows_or_persons(relation, rows, text):
    assert header.observations(SimpleNamespace(adjacency=relation, rows=rows, units=None)) == text


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (ROW, "one event (a row)"),
        (ROWS, "any 3 events (rows)"),
        (PERSON, "one person, as one event"),
        (TWO, "one person, at most 2 events"),
    ],
    ids=str,
)
def test_a_series_protects_events_or_persons(relation, text):
    assert hist.protected(SimpleNamespace(release=SimpleNamespace(adjacency=relation))) == text


@pytest.mark.parametrize(
    ("relation", "local", "units", "text"),
    [
        (ROW, True, 1, "one respondent"),
        (ROW, True, 4, "4 respondents"),
        (ROW, False, 1, "one row"),
        (ROW, False, 4, "any 4 rows"),
        (ROWS, False, 1, "any 3 rows (one person's)"),
        (ROWS, False, 4, "any 12 rows"),
        (PERSON, False, 1, "one person (all rows)"),
        (PERSON, False, 4, "4 persons"),
        (TWO, False, 4, "4 persons"),
    ],
)
def test_an_interpretation_is_of_one_unit_or_of_several(relation, local, units, text):
    assert protected(relation, local, units) == text


@pytest.mark.parametrize(
    ("relation", "exact", "start"),
    [
        (PERSON, True, "Sampling errors of means are clustered by person (id), for any dependence"),
        (TWO, True, "Sampling errors of means are clustered by person (id), for any dependence"),
        (PERSON, False, "A person counts as one observation, with the sampling error of a single "),
        (TWO, False, "Rows of a person may be dependent: sampling variances are 2 times those of"),
        (ROWS, False, "Any 3 rows may be dependent: sampling variances are 3 times those of"),
    ],
)
def test_errors_of_dependent_rows(relation, exact, start):
    assert header._cluster_note((relation, exact)).startswith(start)


def release(relation, *events, rows=1000, delta=1e-3):
    """What the notes of a guarantee read."""
    return SimpleNamespace(
        adjacency=relation,
        events=events,
        guarantee=ApproxDP(1.0, delta),
        info=SimpleNamespace(name="gauss", numerics="exact lattice", source="somebody"),
        rows=rows,
        shared=None,
        subset=None,
        ball=None,
        units=None,
    )


@pytest.mark.parametrize(
    ("relation", "unit"), [(ROW, "rows"), (ROWS, "rows"), (PERSON, "persons"), (TWO, "persons")]
)
def test_a_large_delta_discloses_single_units(relation, unit):
    """It is compared with one over their number: persons are so many rows less."""
    call, limit = SimpleNamespace(reason=""), 0.1 * relation.design_effect
    for n_rows, is_large in ((limit / 1e-3 * 1.01, True), (limit / 1e-3 * 0.99, False)):
        notes = header.closing(call, release(relation, GaussianEvent(5.0), rows=n_rows))
        text = f"delta is not small relative to 1/n: it permits the disclosure of single {unit}."
        assert (text in notes) == is_large


def test_a_delta_that_nothing_uses_is_said_to_be_unused():
    call = SimpleNamespace(reason="")
    notes = header.closing(call, release(ROW, LaplaceEvent(1.0)))
    assert notes[0] == "delta is not used: the release is private with eps = 1 and delta = 0."
    # Two such releases together need the delta.
    notes = header.closing(call, release(ROW, LaplaceEvent(1.0, 2)))
    assert notes[0].startswith("delta is not small relative to 1/n")


@pytest.mark.parametrize(
    ("relation", "unit", "disjoint"),
    [(ROW, "row", "disjoint rows"), (PERSON, "person", "all rows of a person")],
)
def test_what_sites_are_assumed_to_hold(relation, unit, disjoint):
    of_sites = release(relation)
    of_sites.shared = SimpleNamespace(holds="the others", protocol="full", sees="all")
    notes = header._shared_notes(of_sites)
    assert f"if no {unit} is at two sites, which no protocol can detect." in notes[0]
    assert notes[0].startswith("The guarantee holds against the others,")
    assert notes[1] == "Trust (full): the aggregator sees all."
    assert notes[2] == (
        f"Sites are assumed to hold {disjoint}: a {unit} at two sites counts twice and is "
        "protected less than stated."
    )


def test_a_count_below_four_noise_sds_may_be_of_nobody():
    assert header.complete_text(39.9, 10.0) == "may be 0 rows (noise sd 10)"
    assert header.complete_text(40.1, 10.0) == "40 rows (noise sd 10)"
    assert header.complete_text(40.1, 10.0, 38, "persons") == (
        "38 persons (noise sd 10; released 40)"
    )


@pytest.mark.expensive
def test_robust_errors_are_of_rows_or_of_persons():
    words = {"codebook": BOOK, "eps": 50.0, "delta": 1e-6}
    by_row = printed(dp.dp_lm("y ~ x", panel(), vcov="HC", **words))
    assert "Covariance type: HC, bought with" in by_row
    assert "unequal residual variances (HC1; one row: at most" in by_row
    by_person = printed(dp.dp_lm("y ~ x", panel(), vcov="cluster", person="id", **words))
    assert "Covariance type: cluster (id), bought with" in by_person
    assert "rows clustered by person (id; one person: at most" in by_person
    assert "one row:" not in by_person


@pytest.mark.parametrize(("person", "unit"), [(None, "rows"), ("id", "persons")])
@pytest.mark.expensive
def test_complete_rows_or_persons(person, unit):
    words = {"codebook": BOOK, "eps": 50.0, "delta": 1e-6, "person": person}
    for fit in (
        dp.dp_fdr("x + g ~ y", panel(), **words),
        dp.dp_mean("y ~ g", panel(), **words),
        dp.dp_cov("~ x + y", panel(), **words),
    ):
        text = printed(fit).partition("Complete:")[2]
        assert text.split()[1].strip(",;.(") == unit or f" {unit} (noise sd" in text[:60]


def test_dependent_series_count_the_times_of_persons():
    chain = dp.markov_chain(["u", "v"], stay=0.6, initial="stationary")
    rng = np.random.default_rng(3)
    for persons, text in ((1, "1 person, 40 times each"), (3, "3 persons, 40 times each")):
        data = pd.DataFrame(
            {
                "g": rng.choice(["u", "v"], 40 * persons),
                "t": np.tile(np.arange(40), persons),
                "who": np.repeat(np.arange(persons), 40),
            }
        )
        budget = dp.Pufferfish(1.0, chain)
        fit = dp.dp_table(
            "~ g",
            data,
            codebook=BOOK | {"t": dp.Integer(0, 39)},
            budget=budget,
            time="t",
            person="who",
        )
        assert f"Observations: {text}" in printed(fit)
        assert math.isfinite(fit.noise_sd())


@pytest.mark.parametrize("units", ["psu", None])
def test_the_persons_of_a_design_are_sampling_units(units):
    """Notes on observations and on what varies between persons are not about a design."""
    notes = "Missing values count.", "errors treat each observation", "those between persons only"
    facts = ("Observations", "40 persons (public)"), ("Protects", "one person")
    report = Report("Title", facts, (), notes, None)
    named = header.in_units(report, SimpleNamespace(sampled=SimpleNamespace(units=units)))
    if units is None:
        assert named is report
        return
    assert named.notes == notes[:1]
    assert [text for _, text in named.facts] == ["40 sampling units (public)", "one sampling unit"]
