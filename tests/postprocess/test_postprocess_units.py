"""Releases of persons: in their units, for every kind of release and however many rows each has."""

import numpy as np
import pandas as pd
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.privacy import Adjacency

BOOK = dp.codebook(wage=(-4, 4), age=(-4, 4), sex=["u", "v"])
SUMS = ("count", "total", "second", "values", "counts", "variances", "expected_loss")
NOISES = ("noise_sd", "noise_sds", "variance_sd", "gradient_sd", "ridge", "count_sd", "rank_sd")
PERSONS = forms("persons")


def rows(persons=400):
    rng = np.random.default_rng(1)
    x = rng.normal(size=persons).clip(-4, 4)
    y = (0.5 * x + rng.normal(size=persons)).clip(-4, 4)
    g = np.where(y + rng.normal(size=persons) > 0, "v", "u")
    return pd.DataFrame({"id": np.arange(persons), "age": x, "wage": y, "sex": g})


def sums(release):
    """Released sums over rows, as arrays."""
    sums_by_name = {name: getattr(release, name, None) for name in SUMS}
    if getattr(release, "curvature", None) is not None:
        sums_by_name |= {"bread": release.curvature.bread, "meat": release.curvature.meat}
    if getattr(release, "meat", None) is not None:
        root = release.meat.root
        sums_by_name["filling"] = root @ release.meat.squares @ root.T
    return {
        name: sum_of_rows for name, sum_of_rows in sums_by_name.items() if sum_of_rows is not None
    }


def noises(release):
    """The stated noise of these."""
    noises_by_name = {name: getattr(release, name, None) for name in NOISES}
    curvature = getattr(release, "curvature", None)
    laws = {"noise": getattr(release, "noise", None)} if curvature is None else vars(curvature)
    for name, law in laws.items():
        if "noise" in name and law is not None:
            noises_by_name |= {f"{name}.{part}": sd for part, sd in vars(law).items()}
    return {name: noise for name, noise in noises_by_name.items() if noise is not None}


def pair(form, budget):
    """One row a person; and up to seven copies of it, protected by person."""
    single = rows()
    copies = single.loc[np.repeat(single.index, 1 + single.index % 7)]
    options = {"codebook": BOOK, **budget, **form.options}
    return form.ask(single, **options), form.ask(copies, person="id", **options)


@pytest.mark.parametrize("name", PERSONS)
def test_persons_with_copies_of_a_row_are_those_rows(name):
    """However often a person's row is there: sums are those of one row a person, not of places.

    Sums are up to hundreds, noise and roundings below 2; sums of places are sixty times as many.
    """
    # Seeded: squares of scores are taken at estimates, whose noise moves them now and then by more.
    with dp.simulation(seed=1):
        alone, fit_of_persons = pair(PERSONS[name], {"eps": 1e6, "delta": 1e-6})
    assert (fit_of_persons.release.rows, alone.release.rows) == (400, 400)
    first, second = sums(fit_of_persons.release), sums(alone.release)
    if PERSONS[name].verb.name == "dp_mean" and fit_of_persons.call.formula == "wage ~ sex":
        # Two more parts a group, 0 for persons who are in one.
        first["values"] = np.append(first["values"][:-1].reshape(2, 5)[:, :3], first["values"][-1])
    assert first.keys() == second.keys() != set()
    for part, value in first.items():
        assert value == pytest.approx(second[part], rel=0.02, abs=2.0, nan_ok=True), part


@pytest.mark.parametrize("name", PERSONS)
def test_noise_of_persons_is_that_of_rows(name):
    """A person is protected at the price of a row; a quantile's cells follow from the counts."""
    # Seeded: noisy counts now and then cut a quantile's cells in another place.
    with dp.simulation(seed=1):
        alone, fit_of_persons = pair(PERSONS[name], {"eps": 1.0, "delta": 1e-6})
    first, second = noises(fit_of_persons.release), noises(alone.release)
    assert first.keys() == second.keys() != set()
    for part, value in first.items():
        assert value == pytest.approx(second[part], rel=0.2, nan_ok=True), part


def test_letters_of_sites_say_persons(tmp_path):
    """What `combine` makes of letters is in the units of what the verb makes of rows."""
    single = rows(40)
    copies = pd.concat([single] * 3)
    agreed = {"codebook": BOOK, "eps": 1e6, "session": "units", "verb": "mean"}
    agreed |= {"protocol": "full", "adjacency": Adjacency("replace", "mean", "id"), "delta": 1e-6}
    halves = [copies[copies.id % 2 == i] for i in range(2)]
    files = [
        dp.site_release("wage ~ sex", half, tmp_path / name, site=name, **agreed)
        for half, name in zip(halves, "AB", strict=True)
    ]
    fit = dp.combine(files)
    assert fit.release.rows == 40
    assert fit.release.adjacency.places == 60
    assert fit.params.to_numpy() == pytest.approx(single.groupby("sex").wage.mean(), abs=0.02)
