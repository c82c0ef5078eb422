"""Every verb is a method, with the verb's own words less those that a session says."""

import inspect
import re
from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.privacy import Adjacency
from dpmodels.sessions.call import method, method_name
from dpmodels.sessions.session import Session

STUB = Path(dp.__file__).with_suffix(".pyi").read_text("utf-8")
# But for those that charge nothing: a session is a table with its budget.
FOUND = re.findall(r"^from \S+ import dp_\w+ as dp_(\w+)$", STUB, flags=re.MULTILINE)
VERBS = sorted(name for name in FOUND if name != "survey")
SAID = {"data", "sites", "protocol", "csv", "codebook", "person", "rows", "adjacency", "ledger"}
ROWS = {"age": [20, 40, 60, 80] * 100, "sex": ["F", "M"] * 200}
BOOK = dp.codebook(age=(0, 100), sex=["F", "M"])


@pytest.mark.expensive
def test_every_verb_is_a_method():
    assert len(VERBS) >= 13
    assert dir(dp.call) == VERBS
    assert not hasattr(Session, "survey")
    assert set(VERBS) < set(dir(dp.session(ROWS, BOOK, eps=1.0)))


def test_the_summary_of_a_session_is_its_own_report():
    session = dp.session(ROWS, BOOK, eps=1.0)
    assert str(session.summary()) == repr(session)
    with pytest.raises(ArgumentError, match=r"session\.table_one\(formula"):
        session.summary("~ age")
    with pytest.raises(ArgumentError, match=r"session\.table_one\(formula"):
        session.summary("~ age", eps=0.5)


def test_a_table_one_is_planned_by_the_name_of_its_method():
    session = dp.session(ROWS, BOOK, eps=1.0)
    planned = session.call.table_one("~ age", eps=0.5)
    assert repr(planned) == repr(dp.call("summary", "~ age", eps=0.5))
    assert repr(planned) == "table_one('~ age', eps=0.5)"
    assert "table_one('~ age'" in session.plan([planned]).summary().as_text()


def test_a_method_is_suggested_for_the_name_of_a_function():
    session = dp.session(ROWS, BOOK, eps=1.0)
    with pytest.raises(NotAvailable, match=r"session\.dp_lm \(did you mean 'lm'\?\)"):
        session.dp_lm("y ~ x")
    with pytest.raises(NotAvailable, match=r"session\.mena \(did you mean 'mean'\?\): .*table_one"):
        session.mena("~ age")


@pytest.mark.parametrize("name", VERBS)
def test_a_method_has_the_words_and_the_docstring_of_its_verb(name):
    verb = getattr(dp, f"dp_{name}")
    result = inspect.signature(getattr(dp.session(ROWS, BOOK, eps=1.0), method_name(name)))
    reference = inspect.signature(verb)
    assert list(result.parameters)[:5] == ["formula", "eps", "share", "delta", "budget"]
    assert set(result.parameters) == (set(reference.parameters) - SAID) | {"share"}
    distance = {"eps", "share", "delta", "budget"}
    values = [word for word in result.parameters if word not in distance]
    assert all(result.parameters[word] == reference.parameters[word] for word in values)
    assert result.return_annotation == reference.return_annotation
    text, total = inspect.getdoc(getattr(Session, method_name(name))), inspect.getdoc(verb)
    assert text.splitlines()[0] == total.splitlines()[0]
    assert text.endswith(total.partition("\n")[2])
    assert "share of what is left" in text


@pytest.mark.parametrize(
    ("inputs", "words", "reported"),
    [
        (("~ age", ROWS), {}, 'write subset="age >= 25" rather than filter'),
        (("~ age",), {"data": ROWS}, 'write subset="age >= 25" rather than filter'),
        (("~ age",), {"sites": {"A": ROWS}}, "a session has one table"),
        (("~ age",), {"codebook": BOOK}, "the session sets codebook="),
        (("~ age",), {"adjacency": "replace"}, "the session sets adjacency="),
        (("~ age",), {"ledger": None}, "the session sets ledger="),
        (("~ age",), {"person": "sex"}, "the session sets person="),
        (
            ("~ age",),
            {"mechanisms": "rounds"},
            "mechanisms= is not expected (did you mean 'mechanism'?); expected parameters: eps,",
        ),
        (("~ age",), {"formula": "~ sex"}, "formula= is not expected"),
        ((), {"eps": 1}, "no formula is given"),
    ],
)
def test_words_that_a_method_does_not_take_are_refused(inputs, words, reported):
    session = dp.session(ROWS, BOOK, eps=1.0)
    with pytest.raises(ArgumentError, match=re.escape(reported)):
        session.mean(*inputs, **({"eps": 0.5} | words))
    assert not session.ledger.entries


def test_a_formula_may_be_given_by_name():
    session = dp.session(ROWS, BOOK, eps=1.0)
    assert session.mean(formula="~ age", eps=0.5).params.size == 1


def plain(formula, data=None, *, codebook, eps=None, delta=0.0, adjacency=None, ledger=None):
    """A verb that knows no subsets."""
    return adjacency


def heard(formula, data=None, *, subset=None, **words):
    """A verb that does."""
    return subset


def test_what_a_session_says_is_handed_on_or_refused_and_never_dropped(monkeypatch):
    monkeypatch.setattr(Session, "plain", method(plain), raising=False)
    monkeypatch.setattr(Session, "heard", method(heard), raising=False)
    rows = {**ROWS, "id": ROWS["age"]}
    session = dp.session(rows, BOOK, eps=1.0, person="id", rows=3)
    assert session.plain("~ age", eps=0.5) == Adjacency("replace", 3, "id")
    assert session.heard("~ age", eps=0.5, subset="age > 25") == "age > 25"
    pair = dp.session(ROWS, BOOK, eps=1.0, subset="age > 50")
    assert pair.heard("~ age", eps=0.5) == "age > 50"
    with pytest.raises(ArgumentError, match="write both conditions in one of the two"):
        pair.heard("~ age", eps=0.5, subset="age > 25")
    with pytest.raises(ArgumentError, match="plain takes no subset="):
        pair.plain("~ age", eps=0.5)
