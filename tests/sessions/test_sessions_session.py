"""A session says once what its calls share, keeps the ledger, and goes nowhere."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    CodebookError,
    FormulaError,
    FrameError,
    LedgerError,
    NotAvailable,
    PrivacyError,
)
from dpmodels.privacy import Adjacency, PureEvent
from dpmodels.sessions.call import method
from dpmodels.sessions.session import Session
from dpmodels.sites import Parties

ROWS = {"age": [20, 40, 60, 80] * 100, "sex": ["F", "M"] * 200}
AGAIN = {name: list(cells) for name, cells in ROWS.items()}
BOOK = dp.codebook(age=(0, 1000), sex=["F", "M"])


def test_a_session_answers_as_the_verb_does():
    session = dp.session(ROWS, BOOK, eps=2.0, adjacency="add-remove")
    with dp.simulation(seed=3):
        average = session.mean("age ~ sex", eps=0.5, mechanism="geometric")
    with dp.simulation(seed=3):
        fit = dp.dp_mean(
            "age ~ sex",
            ROWS,
            codebook=BOOK,
            eps=0.5,
            mechanism="geometric",
            adjacency="add-remove",
        )
    assert average.params.equals(fit.params)
    assert session.spent.amount == pytest.approx(0.5)
    assert session.left.amount == pytest.approx(1.5)
    assert session.register()["state"].tolist() == ["released"]


def test_a_ledger_in_a_file_is_made_and_opened_again(tmp_path):
    path = tmp_path / "study.ledger"
    dp.session(ROWS, BOOK, eps=2.0, ledger=path).mean("~ age", eps=0.5)
    again = dp.session(ROWS, BOOK, ledger=str(path))
    again.mean("~ age", eps="1/3")
    assert again.spent.amount == pytest.approx(1.0)
    assert "study.ledger" in repr(again)
    with pytest.raises(LedgerError, match="was opened with the guarantee eps = 2"):
        dp.session(ROWS, BOOK, eps=3.0, ledger=path)


def test_a_ledger_is_taken_as_it_is():
    ledger = dp.Ledger(eps=2.0, delta=1e-6, pure=0.5)
    session = dp.session(ROWS, BOOK, ledger=ledger)
    assert session.ledger is ledger
    assert dp.session(ROWS, BOOK, ledger=ledger, eps=2.0, delta=1e-6).ledger is ledger
    with pytest.raises(BudgetError, match="the session states eps = 1"):
        dp.session(ROWS, BOOK, ledger=ledger, eps=1.0)
    with pytest.raises(LedgerError, match="adjacency"):
        dp.session(ROWS, BOOK, ledger=ledger, adjacency="add-remove")


def frames():
    yield ROWS


@pytest.mark.parametrize(
    ("words", "error", "reported"),
    [
        ({"data": frames()}, FrameError, "an iterator of tables can be read only once"),
        ({"data": map(dict, [ROWS])}, FrameError, "write the tables to a Parquet file"),
        ({"data": "nowhere.parquet"}, FrameError, "nowhere.parquet"),
        ({"data": None}, FrameError, "neither data nor sites"),
        ({"data": 7}, FrameError, "data of type int"),
        ({"codebook": None}, CodebookError, r"codebook"),
        ({"eps": None}, BudgetError, "Neither eps nor budget"),
        ({"budget": dp.PureDP(1)}, BudgetError, "eps and budget are both given"),
        ({"ledger": 7}, ArgumentError, "ledger of type int"),
        ({"share": 2}, ArgumentError, "share=2: expected a share"),
        ({"adjacency": "remove"}, ArgumentError, "adjacency='remove'"),
        ({"protocol": "pooled"}, ArgumentError, "protocol= goes with sites"),
        ({"person": "idd"}, FrameError, "no column 'idd'"),
        ({"subset": "idd > 3"}, FormulaError, "subset='idd > 3': variable 'idd'"),
        ({"subset": "zz > 3", "codebook": {"zz": (0, 9)}}, FrameError, "no column 'zz'"),
    ],
)
def test_what_makes_no_session_is_refused(words, error, reported):
    with pytest.raises(error, match=reported):
        dp.session(**({"data": ROWS, "codebook": BOOK, "eps": 1.0} | words))


# At these budgets noise other than 0 comes up less than once in 10⁹.
@pytest.mark.expensive
def test_a_list_of_tables_is_read_at_every_call():
    session = dp.session([ROWS, AGAIN], BOOK, eps=100.0)
    for _ in range(2):
        assert session.table("~ sex", eps=50.0).counts.to_numpy().tolist() == [400.0, 400.0]


def test_sites_are_said_once():
    sites = {"A": ROWS, "B": AGAIN}
    session = dp.session(sites=sites, protocol="pooled", codebook=BOOK, eps=50.0)
    assert session.table("~ sex", share=1).counts.to_numpy().tolist() == [400.0, 400.0]
    with pytest.raises(
        FrameError, match="site 'B': each call of a session reads the data, but an iterator"
    ):
        dp.session(sites={"A": ROWS, "B": frames()}, protocol="pooled", codebook=BOOK, eps=1.0)


@dataclass(frozen=True)
class Found:
    """What is found of bounds."""

    codebook: dp.Codebook


def dp_bounds(formula, data=None, *, codebook, eps=None, delta=0.0, adjacency, ledger=None):
    """Find the bounds of age."""
    assert isinstance(data, Parties)
    assert codebook["age"].upper == 1000
    return Found(codebook.select(["age"]) | dp.codebook(age=(0, 100)))


def test_bounds_that_were_found_hold_from_then_on(monkeypatch):
    monkeypatch.setattr(Session, "bounds", method(dp_bounds), raising=False)
    session = dp.session(ROWS, BOOK, eps=1.0)
    result = session.tighten("~ age", eps=0.1)
    assert result == Found(dp.codebook(age=(0, 100)))
    assert session.codebook == dp.codebook(age=(0, 100), sex=["F", "M"])
    assert session.mean("~ age", eps=0.5).call.codebook["age"].upper == 100
    assert BOOK["age"].upper == 1000
    with pytest.raises(NotAvailable, match=r"call\.limits: expected a verb, one of .*cov"):
        session.call.limits("~ age")


def test_declarations_may_be_added():
    session = dp.session(ROWS, BOOK.select(["sex"]), eps=1.0)
    with pytest.raises(CodebookError):
        session.mean("~ age", eps=0.5)
    session.declare({"age": (0, 100)})
    assert session.mean("~ age", eps=0.5).params.size == 1
    for wrong in ({"age": 7}, "age"):
        with pytest.raises(CodebookError):
            session.declare(wrong)
    assert session.codebook["age"].upper == 100


def test_declarations_name_no_persons_whom_a_session_does_not_protect():
    session = dp.session(ROWS, BOOK, eps=1.0)
    with pytest.raises(CodebookError, match=r"person='id', and this session protects one row"):
        session.declare(dp.codebook(age=(0, 100), person="id"))
    assert session.codebook == BOOK
    persons = dp.session(ROWS, BOOK, eps=1.0, person="sex")
    persons.declare(dp.codebook(age=(0, 100), person="sex"))
    assert persons.codebook["age"].upper == 100


def test_a_session_prints_public_facts():
    session = dp.session(ROWS, BOOK, eps=2.0, delta=1e-6)
    assert "Left: eps = 2 Gaussian, 2 other noise" in " ".join(repr(session).split())
    session.table("~ sex", eps=0.5)
    text = repr(session)
    assert "1 dp_table ~ sex" in text
    assert "0.500 of 2.00 eps spent" in text
    assert "replace one row, n public" in text
    assert "2 variables" in text
    assert "dp_table ~ sex" in session._repr_html_()
    assert "400" not in text


def test_of_many_calls_the_last_are_printed():
    session = dp.session(ROWS, BOOK, eps=1.0)
    for number in range(25):
        session.ledger.charge([PureEvent(0.01)], adjacency="replace", label=f"call-{number}")
    text = repr(session)
    assert "25 call-24" in text
    assert "5 call-4\n" not in text
    assert "5 earlier calls: see register()" in text


PANEL = {"id": [person for person in range(200) for _ in range(4)], "age": [20, 40, 60, 80] * 200}
YEARS = BOOK.select(["age"])


def test_persons_and_subsets_are_said_once():
    session = dp.session(
        PANEL, YEARS, eps=2.0, person="id", rows=2, subset="age >= 40", adjacency="add-remove"
    )
    text = " ".join(repr(session).split())
    assert "add or remove one person" in text
    assert "Person: id" in text
    assert "Subset: age >= 40" in text
    average = session.mean("~ age", eps=1.0)
    assert average.release.adjacency == Adjacency("add-remove", 2, "id")
    assert average.release.subset == "age >= 40"
    assert session.register()["person"].tolist() == ["person (at most 2 rows)"]


@pytest.mark.product
def test_any_rows_together_are_charged_and_priced_as_a_group():
    session = dp.session(PANEL, YEARS, eps=2.0, delta=1e-6, rows=4)
    plan = session.plan([("pca", "~ age", {"eps": "1/2"}), ("mean", "~ age", {"eps": "1/1"})])
    session.pca("~ age", eps="1/2")
    session.mean("~ age", eps="1/1")
    assert session.register()["total"].tolist() == plan.table["total"].tolist()
    assert 2.0 * (1 - 1 / 32) < session.spent.amount <= 2.0
    assert session.left.other < 1e-6
    assert session.ledger.adjacency == Adjacency("replace", 4)


def test_the_neighbours_of_a_ledger_are_those_of_the_session(tmp_path):
    path = tmp_path / "panel.ledger"
    dp.session(PANEL, YEARS, eps=2.0, person="id", adjacency="add-remove", ledger=path)
    again = dp.session(PANEL, YEARS, ledger=path)
    again.mean("~ age", eps=0.5)
    assert again.ledger.entries
    for words in ({"person": "age"}, {"adjacency": "replace"}, {"rows": 3}):
        with pytest.raises(LedgerError):
            dp.session(PANEL, YEARS, ledger=path, **words)
        with pytest.raises(LedgerError):
            dp.session(PANEL, YEARS, ledger=again.ledger, **words)


@pytest.mark.parametrize("away", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_is_not_copied_or_pickled(away):
    with pytest.raises(PrivacyError, match="cannot be copied or pickled"):
        away(dp.session(ROWS, BOOK, eps=1.0))


def test_a_fork_spends_nothing_from_memory_and_from_a_file_what_all_do(tmp_path):
    memory = dp.session(ROWS, BOOK, eps=1.0)
    file = dp.session(ROWS, BOOK, eps=1.0, ledger=Path(tmp_path) / "study.ledger")
    memory.split(2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            file.table("~ sex", eps=0.75)
            try:
                memory.table("~ sex")
            except PrivacyError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert file.spent.amount == pytest.approx(0.75)
    with pytest.raises(LedgerError):
        file.table("~ sex", eps=0.5)
    assert memory.table("~ sex").release.guarantee == dp.PureDP(0.5)


def test_nothing_of_a_session_can_be_set():
    session = dp.session(ROWS, BOOK, eps=1.0)
    for name in ("ledger", "codebook", "spent", "data"):
        with pytest.raises(AttributeError):
            setattr(session, name, None)
    for parts in (0, 1.5, True, "5"):
        with pytest.raises(ArgumentError, match="parts="):
            session.split(parts)


@pytest.mark.product
def test_charges_do_not_depend_on_rows():
    """The same calls on other rows are priced and charged the same, shares included."""
    spent = []
    for age in (np.arange(400) % 100, np.full(400, 1000), np.full(400, np.nan)):
        session = dp.session({"age": age, "sex": ["F", "M"] * 200}, BOOK, eps=2.0, delta=1e-6)
        session.split(3)
        session.mean("age ~ sex")
        session.pca("~ age + sex")
        session.lm("age ~ sex")
        spent.append(session.register()[["events", "total"]].to_numpy().tolist())
    assert spent[0] == spent[1] == spent[2]


def test_parts_are_taken_once_each_in_many_threads():
    """Five parts in 32 threads ended at -1."""
    session = dp.session(ROWS, BOOK, eps=5.0)
    session.split(5)

    def call(_):
        try:
            return session.table("~ sex").release.guarantee.eps
        except BudgetError:
            return None

    with ThreadPoolExecutor(32) as pool:
        spent = [eps for eps in pool.map(call, range(32)) if eps is not None]
    assert len(spent) == len(session.ledger.entries) == 5
    assert session._parts == 0
    assert max(spent) < 1.01 * min(spent)
