"""A verb that is declared in a file of its own works wherever verbs do: nothing else names it."""

import copy
import importlib.util
import pickle
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main
from dpmodels.audit.registry import declared_lines
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.sessions.session import Session
from dpmodels.verbs import VERBS, verb_names

FILE = '''
"""``dp_mine``: means and a multiple of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Unpack

from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.models.descriptive_specs import descriptive_spec, mean_tally
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.models.verb import Shared, run_verb, verb
from dpmodels.request import Request
from dpmodels.results.groups import MeanResult
from dpmodels.verbs import spec_of


@dataclass(frozen=True, repr=False)
class MineResult(MeanResult):
    """Means, and so many times as much."""

    times: int = 1

    @property
    def multiple(self):
        return self.params * self.times


@verb
def dp_mine(
    formula: str,
    data: object = None,
    *,
    times: int = 2,
    mechanism: str | CountMechanism = "auto",
    **shared: Unpack[Shared],
) -> MineResult:
    """Release means to be multiplied.

    Parameters
    ----------
    formula : str
        As for :func:`dp_mean`.
    times : int
        How many times the mean is wanted.
    mechanism : {"auto", "geometric", "gaussian"} or instance
        As for :func:`dp_mean`.

    Examples
    --------
    >>> fit = dp_mine("wage ~ sex", rows, codebook=cb, eps=1.0, times=3)
    """
    return run_verb("mine", mine_spec, **locals())


@spec_of("mine", gaussian="gaussian", audited=("a ~ g", "geometric"))
def mine_spec(question: Request) -> VerbSpec[MineResult]:
    both = parse_sides(question.formula, question.codebook)
    number, factors = one_measured(both, "dp_mine")
    tally = mean_tally(question.adjacency, factors, number)
    result = partial(MineResult, times=question.options["times"])
    return descriptive_spec(question, both, (tally,), result)
'''
BOOK = dp.codebook(wage=(0, 80), sex=["F", "M"])
BUDGET = {"codebook": BOOK, "eps": 2.0}
RNG = np.random.default_rng(4)
ROWS = {"wage": RNG.uniform(0, 80, 900), "sex": RNG.choice(["F", "M"], 900)}


@contextmanager
def declared(name, text, folder):
    """The function of a verb that is declared by its decorators alone, for a while."""
    path = folder / f"throw_away_{name}.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        yield getattr(module, f"dp_{name}")
    finally:
        del sys.modules[path.stem], VERBS[name]


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    with declared("mine", FILE, tmp_path_factory.mktemp("throw_away")) as function:
        yield function


@pytest.fixture(scope="module")
def fit(mine):
    return mine("wage ~ sex", ROWS, times=3, **BUDGET)


def test_it_is_a_method_of_a_session_and_a_call(mine, fit):
    session = dp.session(ROWS, BOOK, eps=2.0)
    assert "mine" in dir(session)
    assert "mine" in dir(dp.call)
    result = session.mine("wage ~ sex", eps=0.5, times=3)
    assert (result.multiple == 3 * result.params).all()
    assert session.register()["verb"].tolist() == ["dp_mine"]
    assert repr(dp.call.mine("~ wage", times=4)) == "mine('~ wage', times=4)"
    assert session.plan([("mine", "wage ~ sex", {"eps": 0.5})]).fits
    assert session.make(session.call.mine("~ wage", eps=0.5)).params.size == 1


@pytest.mark.product
def test_it_is_planned_and_its_power_is_that_of_its_kind_of_result(mine):
    plan = dp.plan([dp.call.mine("wage ~ sex")], codebook=BOOK, n=2_000, eps=1.0)
    assert plan.table["identified"].tolist() == [1.0]
    assert plan.calls[0].verb is mine
    power = dp.power("~ wage", verb="mine", codebook=BOOK, n=2_000, eps=1.0, effect=2.0)
    assert 0.5 < power.power.item() < 1


def test_it_is_saved_pickled_and_set_beside_others(fit, tmp_path):
    fit.save(tmp_path / "mine.nc")
    for again in (dp.load(tmp_path / "mine.nc"), pickle.loads(pickle.dumps(fit)), copy.copy(fit)):
        assert type(again) is type(fit)
        assert str(again.summary()) == str(fit.summary())
        assert again.multiple.equals(fit.multiple)
    assert "mean" in dp.etable([fit, fit]).as_text()


def test_it_is_a_command(mine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(ROWS).to_csv("rows.csv", index=False)
    BOOK.save("cb.json")
    arguments = [
        "rows.csv",
        "--codebook",
        "cb.json",
        "--eps",
        "1",
        "--times",
        "5",
        "--save",
        "fit.nc",
    ]
    assert main(["mine", "wage ~ sex", *arguments]) == 0
    assert dp.load("fit.nc").times == 5
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "Release means to be multiplied" in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["full", "secure_sum"])
def test_it_is_released_by_several_sites(mine, protocol, tmp_path):
    sites = {
        name: {key: row[part::2] for key, row in ROWS.items()} for part, name in enumerate("AB")
    }
    words = {"codebook": BOOK, "budget": dp.ZCDP(1e9)}
    once = mine("wage ~ sex", sites=sites, protocol=protocol, times=3, **words)
    keyed = protocol == "secure_sum"
    cards = [dp.site_key(name, tmp_path / f"{name}.key") for name in sites if keyed]
    files = []
    for name, data in sites.items():
        message = {"session": "s", "protocol": protocol, "verb": "mine", "times": 3, **words}
        if keyed:
            ledger = dp.Ledger.open(tmp_path / f"{name}.ledger", budget=words["budget"], new=True)
            message |= {"key": tmp_path / f"{name}.key", "cards": cards, "ledger": ledger}
        files.append(
            dp.site_release("wage ~ sex", data, tmp_path / f"{name}.json", site=name, **message)
        )
    fit = dp.combine(files)
    np.testing.assert_allclose(fit.multiple, once.multiple, rtol=1e-3)
    with pytest.raises(ArgumentError, match="ncomp= is not a parameter of verb 'mine'"):
        dp.site_release(
            "~ wage", ROWS, tmp_path / "x", site="A", verb="mine", session="t", protocol="full",
            ncomp=2, **words,
        )  # fmt: skip


def test_it_is_audited(mine):
    (line,) = (line for line in declared_lines() if line.verb.func is mine)
    assert line.name == "dp_mine geometric (eps)"
    assert dp.audit(line.verb, line.pair, runs=64).verdict == "consistent"


@pytest.mark.product
def test_the_verb_that_contributing_shows_can_be_used(tmp_path):
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
    text = guide.partition("## Add a verb")[2].partition("```python\n")[2].partition("```")[0]
    with declared("spread", text, tmp_path):
        fit = dp.session(ROWS, BOOK, eps=2.0).spread("wage ~ sex", eps=1.0)
        assert fit.sd.between(10, 40).all()
        assert "Private variances" in str(fit.summary())
        plan = dp.plan([dp.call.spread("~ wage")], codebook=BOOK, n=2_000, eps=1.0)
        assert plan.table["identified"].tolist() == [1.0]


def test_a_verb_that_nobody_declared_is_refused_by_name():
    assert "nobodys" not in verb_names()
    assert not hasattr(Session, "nobodys")
    with pytest.raises(NotAvailable, match=r"call\.nobodys.*: expected a verb, one of bounds"):
        dp.plan([("nobodys", "~ wage", {})], codebook=BOOK, n=100, eps=1.0)
    with pytest.raises(ArgumentError, match=r"verb='nobodys'.*: expected one of"):
        dp.power("~ wage", verb="nobodys", codebook=BOOK, n=2_000, eps=1.0, effect=2.0)
