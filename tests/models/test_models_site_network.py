"""A release over a network without the network: both halves, and what they refuse."""

import json
import logging
from functools import partial

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.models.site_exchange import exchange_terms
from dpmodels.models.site_files import site_release, state
from dpmodels.models.site_network import (
    MESSAGE,
    OPENING,
    TERMS,
    SiteAnswers,
    agreed_terms,
    ask_sites,
)
from dpmodels.sites import SecureSum
from dpmodels.sites.message import read_message

CB = dp.codebook(a=(0, 1), b=(0, 1))
SITES = ("A", "B", "C")
KEYED = ("cape", "secure_sum")
SECRET = 0.123456789


def rows(site):
    rng = np.random.default_rng(ord(site))
    return {"a": rng.uniform(0, 1, 60), "b": rng.uniform(0, 1, 60)}


def site(name, folder, data=None, protocol="full", ledger=None, handed=True, **change):
    """The answering half of one site; keyed sites have their keys handed on, or exchanged."""
    own = {"session": "s-1", "codebook": CB, "verb": "pca", "adjacency": "replace"} | change
    own |= {"budget": own.get("budget", dp.ZCDP(0.5)), "protocol": protocol}
    formula, words = own.pop("formula", "~ a + b"), own.pop("options", {})
    keys, is_folder = {}, own.pop("in_rounds", False)
    if protocol in KEYED or isinstance(protocol, SecureSum):
        keys["key"] = folder / f"{name}.key"
        if handed and not keys["key"].exists():
            dp.site_key(name, keys["key"])
        if handed:
            keys["sites"] = SITES
        else:
            keys["cards"] = [folder / f"{one}.key.card" for one in SITES]
        ledger = ledger_of(name, folder)
    _, chosen, terms = state(formula, site=name, **own, options=words)
    path = folder / f"{name}.json"
    if is_folder:
        path, terms = folder / f"{name}.rounds", exchange_terms(terms)
        path.mkdir(exist_ok=True)
    release = partial(
        site_release,
        formula,
        rows(name) if data is None else data,
        path,
        site=name,
        **own,
        ledger=ledger,
        **words,
    )
    return SiteAnswers(name, chosen, terms, path, release, **keys, ledger=ledger)


def ledger_of(name, folder):
    return dp.Ledger.open(folder / f"{name}.ledger", budget=dp.ZCDP(0.5), new=True)


class Street:
    """A way to sites in this process; `silent` ones never answer, `broken` ones fail."""

    def __init__(self, *answering, silent=(), broken=()):
        self.sites = dict(enumerate(answering, 100))
        self.silent, self.broken, self.said, self.asked = silent, broken, [], []

    def nodes(self):
        return list(self.sites)

    def send(self, question, asked, seconds):
        for node, plain in asked.items():
            one = self.sites[node]
            self.asked.append((question, one.site))
            if (question, one.site) in self.silent:
                continue
            if (question, one.site) in self.broken:
                self.said.append((node, {"failure": "out of memory"}))
                continue
            answer = one.answer(question, json.loads(json.dumps(plain)))
            self.said.append((node, json.loads(json.dumps(answer))))

    def arrived(self):
        said, self.said = self.said, []
        return said


def ask(street, folder, session="s-1", timeout=60):
    return ask_sites(street, SITES, session, folder / "letters", timeout)


@pytest.mark.parametrize("handed", [True, False])
@pytest.mark.parametrize("protocol", ["full", "dpdispca", "cape", "secure_sum"])
def test_the_same_release_as_of_files(protocol, handed, tmp_path):
    if not handed:
        for name in SITES:
            dp.site_key(name, tmp_path / f"{name}.key")
    made = [site(name, tmp_path, protocol=protocol, handed=handed) for name in SITES]
    with dp.simulation(seed=3):
        fit = dp.combine(ask(Street(*made), tmp_path))
    with dp.simulation(seed=3):
        alone = tmp_path / "alone"
        alone.mkdir()
        words = {"codebook": CB, "session": "s-1", "budget": dp.ZCDP(0.5), "protocol": protocol}
        keyed = protocol in KEYED
        cards = [dp.site_key(name, alone / f"{name}.key") for name in SITES if keyed]
        for name in SITES:
            key = {"key": alone / f"{name}.key", "cards": cards} if keyed else {}
            key |= {"ledger": ledger_of(name, alone)} if keyed else {}
            path = alone / f"{name}.json"
            dp.site_release("~ a + b", rows(name), path, site=name, **words, **key)
    own = dp.combine([alone / f"{name}.json" for name in SITES])
    assert np.array_equal(fit.release.second, own.release.second)
    assert fit.release.shared == own.release.shared


def test_letters_that_leave_are_those_that_stay(tmp_path):
    letters = ask(Street(*(site(name, tmp_path) for name in SITES)), tmp_path)
    assert [one.read_bytes() for one in letters] == [
        (tmp_path / f"{name}.json").read_bytes() for name in SITES
    ]


def in_rounds(folder):
    return [site(name, folder, protocol="secure_sum", in_rounds=True) for name in SITES]


@pytest.mark.product
def test_an_exchange_runs_all_its_rounds(tmp_path):
    street = Street(*in_rounds(tmp_path))
    folder = ask(street, tmp_path)
    fit = dp.combine(folder)
    assert fit.release.shared.sites == SITES
    ledgers = [dp.Ledger.open(tmp_path / f"{name}.ledger") for name in SITES]
    assert [sum(bool(entry.events) for entry in own.entries) for own in ledgers] == [1, 1, 1]
    # The last answer tells the sites that it is over.
    assert not any(own.unfinished() for own in ledgers)
    assert not any("private" in (tmp_path / f"{name}.key").read_text("utf-8") for name in SITES)


@pytest.mark.product
def test_an_exchange_that_stopped_goes_on(tmp_path):
    made = in_rounds(tmp_path)
    with pytest.raises(FrameError, match="'B': out of memory"):
        ask(Street(*made, broken=[(MESSAGE, "B")]), tmp_path)
    sent = (tmp_path / "letters" / "message-1-A.json").read_bytes()
    fit = dp.combine(ask(Street(*made), tmp_path))
    assert (tmp_path / "letters" / "message-1-A.json").read_bytes() == sent
    assert fit.release.rows == 180


QUORUM = SecureSum(colluders=0, dropouts=1)


class Away(Street):
    """Sites that do not answer certain turns: by site, of which kind, the first and those after."""

    def __init__(self, *answering, turns, late=False):
        super().__init__(*answering)
        self.turns, self.late, self.held, self.number = turns, late, [], {}

    def send(self, question, asked, seconds):
        self.said += self.held
        self.held = []
        for node, plain in asked.items():
            key = (question, self.sites[node].site)
            self.number[key] = self.number.get(key, 0) + 1
            if self.number[key] not in self.turns.get(key, ()):
                super().send(question, {node: plain}, seconds)
            elif self.late:
                answer = self.sites[node].answer(question, json.loads(json.dumps(plain)))
                self.held.append((node, answer))


def of_quorum(folder):
    return [site(name, folder, protocol=QUORUM, in_rounds=True) for name in SITES]


def ask_quorum(street, folder):
    return ask_sites(street, SITES, "s-1", folder / "letters", 60, patience=0.5)


@pytest.mark.product
@pytest.mark.parametrize(
    ("turns", "late", "missed"),
    [
        ({}, False, ""),
        ({(MESSAGE, "C"): {3}}, False, "'C'"),
        ({(MESSAGE, "C"): {2}, (MESSAGE, "B"): {4}}, False, "'B', 'C'"),
        ({(MESSAGE, "C"): {2}}, True, "'C'"),
        ({(OPENING, "A"): {1, 2, 3, 4}}, False, ""),
        ({(OPENING, "A"): {1, 3}}, True, ""),
    ],
)
def test_a_quorum_goes_on_without_a_site_and_with_it_again(turns, late, missed, tmp_path):
    made = of_quorum(tmp_path)
    fit = dp.combine(ask_quorum(Away(*made, turns=turns, late=late), tmp_path))
    ledgers = [dp.Ledger.open(tmp_path / f"{name}.ledger") for name in SITES]
    assert [sum(bool(entry.events) for entry in own.entries) for own in ledgers] == [1, 1, 1]
    seen = fit.release.shared.sees
    assert (f"(some without {missed})" in seen) == bool(missed)
    assert fit.release.rows == 180
    assert not any("private" in (tmp_path / f"{name}.key").read_text("utf-8") for name in SITES)


@pytest.mark.product
def test_more_sites_than_agreed_end_a_run_which_goes_on_later(tmp_path):
    turns = {(MESSAGE, "B"): {2}, (MESSAGE, "C"): {2}}
    made = of_quorum(tmp_path)
    with pytest.raises(FrameError, match="site 'B': it did not answer in time"):
        ask_quorum(Away(*made, turns=turns), tmp_path)
    assert not (tmp_path / "letters" / "answer-2.json").exists()
    assert dp.combine(ask_quorum(Street(*made), tmp_path)).release.rows == 180


@pytest.mark.product
def test_a_site_that_missed_the_first_round_stays_out(tmp_path):
    street = Away(*of_quorum(tmp_path), turns={(MESSAGE, "B"): {1}})
    fit = dp.combine(ask_quorum(street, tmp_path))
    assert fit.release.rows == 120
    assert "without 'B'" in fit.release.shared.sees
    assert not dp.Ledger.open(tmp_path / "B.ledger").entries


@pytest.mark.product
def test_a_site_opens_a_round_for_one_list_alone(tmp_path):
    made = of_quorum(tmp_path)
    terms = {own.site: own.answer(TERMS, {"session": "s-1"})["terms"] for own in made}
    agreed, folder = agreed_terms(terms), tmp_path / "study"
    folder.mkdir()
    for own in made:
        letter = own.answer(MESSAGE, agreed)["letter"]
        (folder / f"message-1-{own.site}.json").write_text(letter, encoding="utf-8")
    assert isinstance(dp.combine(folder), dp.sites.OpenRound)
    of_all = (folder / "present-1.json").read_text("utf-8")
    (folder / "present-1.json").unlink()
    (folder / "message-1-C.json").unlink()
    dp.combine(folder, without=["C"])
    of_two = (folder / "present-1.json").read_text("utf-8")
    for strange in ("", "{}", of_all[:-2], (folder / "message-1-A.json").read_text("utf-8")):
        assert "refusal" in made[0].answer(OPENING, {**agreed, "present": strange})
    opened = made[0].answer(OPENING, {**agreed, "present": of_two})
    assert made[0].answer(OPENING, {**agreed, "present": of_two}) == opened
    assert "letter" in opened
    assert "refusal" in made[0].answer(OPENING, {**agreed, "present": of_all})
    assert "refusal" in made[2].answer(OPENING, {**agreed, "present": of_two})


@pytest.mark.product
def test_an_answer_of_another_exchange_is_refused(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    ask(Street(*in_rounds(one)), one)
    made = in_rounds(two)
    agreed = agreed_terms(
        {own.site: own.answer(TERMS, {"session": "s-1"})["terms"] for own in made}
    )
    assert "letter" in made[0].answer(MESSAGE, agreed)
    strange = (one / "letters" / "answer-1.json").read_text("utf-8")
    for answer in (strange, "", "{}", strange[:-2]):
        assert "refusal" in made[0].answer(MESSAGE, {**agreed, "answers": [answer]})
    assert [file.name for file in (two / "A.rounds").iterdir()] == ["message-1-A.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"formula": "~ a"}, "'A' and 'B' do not state the same: formula is ~ a and not ~ a"),
        ({"budget": dp.ZCDP(0.6)}, "guarantee is"),
        ({"options": {"ncomp": 1}}, "options ncomp is 1 and not None"),
        ({"protocol": "dpdispca"}, "protocol name is dpdispca and not full"),
        ({"session": "s-2"}, "'B' refuses: its session is 's-2'"),
    ],
)
def test_a_mismatch_is_found_before_a_row_is_read(change, said, tmp_path):
    ledgers = [dp.Ledger(budget=dp.ZCDP(1.0)) for _ in SITES]
    unread = [iter(()) for _ in SITES]
    made = [
        site(name, tmp_path, unread[i], ledger=ledgers[i], **(change if name == "B" else {}))
        for i, name in enumerate(SITES)
    ]
    street = Street(*made)
    with pytest.raises(FrameError, match=said):
        ask(street, tmp_path)
    assert {question for question, _ in street.asked} == {TERMS}
    assert not any(ledger.entries for ledger in ledgers)
    assert not any(one.path.exists() for one in made)


def test_a_site_does_what_it_stated_and_nothing_else(tmp_path):
    ledger = dp.Ledger(budget=dp.ZCDP(9.0))
    one = site("A", tmp_path, ledger=ledger)
    agreed = agreed_terms({"A": one.answer(TERMS, {"session": "s-1"})["terms"]})
    for change, said in [
        ({"formula": "~ a"}, "formula is ~ a and not"),
        ({"guarantee": ["ZCDP", {"rho": 9.0}]}, "guarantee is"),
        ({"keys": {"A": "00"}}, "keys A is stated by one"),
        ({"options": None}, "options is None"),
        ({"more": 1}, "more is stated by one"),
    ]:
        answer = one.answer(MESSAGE, agreed | change)
        assert "letter" not in answer
        assert f"it does not agree: {said}" in answer["refusal"]
    assert "session" in one.answer(MESSAGE, {})["refusal"]
    assert not ledger.entries
    assert not one.path.exists()


def test_a_session_is_answered_once(tmp_path):
    ledger = dp.Ledger(budget=dp.ZCDP(9.0))
    one = site("A", tmp_path, ledger=ledger)
    agreed = agreed_terms({"A": one.answer(TERMS, {"session": "s-1"})["terms"]})
    assert "letter" in one.answer(MESSAGE, agreed)
    letter = one.path.read_bytes()
    for question, asked in [(MESSAGE, agreed), (TERMS, agreed), (MESSAGE, agreed)]:
        answer = one.answer(question, asked)
        assert set(answer) == {"site", "refusal"}
        assert "already" in answer["refusal"]
    again = site("A", tmp_path, ledger=ledger)
    assert "already" in again.answer(MESSAGE, agreed)["refusal"]
    assert len(ledger.entries) == 1
    assert one.path.read_bytes() == letter


def test_errors_quote_neither_rows_nor_files(tmp_path, caplog):
    def broken():
        raise RuntimeError(f"row 7 is {SECRET}")
        yield

    missing = tmp_path / "patients.csv"
    for name, data in (("A", broken()), ("B", {"a": [SECRET]}), ("C", str(missing))):
        one = site(name, tmp_path, data)
        agreed = agreed_terms({name: one.answer(TERMS, {"session": "s-1"})["terms"]})
        with caplog.at_level(logging.DEBUG):
            answer = one.answer(MESSAGE, agreed)
        assert "it cannot answer" in answer["refusal"]
        assert str(SECRET) not in str(answer) + caplog.text
        assert "patients" not in str(answer)


def test_a_folder_that_is_missing_stops_all_before_a_row_is_read(tmp_path):
    made = [site(name, tmp_path / "not there" if name == "B" else tmp_path) for name in SITES]
    street = Street(*made)
    with pytest.raises(FrameError, match=r"'B' refuses: it cannot answer \(FrameError\)"):
        ask(street, tmp_path)
    assert {question for question, _ in street.asked} == {TERMS}


def test_a_letter_that_a_crash_left_unseen_is_shown_and_not_written_again(tmp_path, monkeypatch):
    made = {name: site(name, tmp_path, protocol="secure_sum") for name in SITES}
    asked = {"session": "s-1"}
    agreed = agreed_terms({name: own.answer(TERMS, asked)["terms"] for name, own in made.items()})

    def dies(*given, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpmodels.sites.message.publish", dies)
    with pytest.raises(KeyboardInterrupt):
        made["A"].answer(MESSAGE, agreed)
    monkeypatch.undo()
    assert not (tmp_path / "A.json").exists()
    assert "has answered" in made["A"].answer(MESSAGE, agreed)["refusal"]
    assert read_message(tmp_path / "A.json").site == "A"
    assert len(made["A"].ledger.entries) == 1


def test_keys_that_are_not_those_named_are_refused(tmp_path):
    made = {name: site(name, tmp_path, protocol="secure_sum") for name in SITES}
    said = {name: one.answer(TERMS, {"session": "s-1"})["terms"] for name, one in made.items()}
    agreed = agreed_terms(said)
    keys = agreed["keys"]
    for changed in (
        {"A": keys["A"], "B": keys["B"]},
        {**keys, "D": keys["C"]},
        {**keys, "A": keys["B"]},
        {**keys, "B": keys["A"]},
        {**keys, "B": "no key"},
        None,
    ):
        answer = made["A"].answer(MESSAGE, {**agreed, "keys": changed})
        assert set(answer) == {"site", "refusal"}
    assert "private" in (tmp_path / "A.key").read_text("utf-8")
    with pytest.raises(FrameError, match="another key of site 'A'"):
        agreed_terms({**said, "B": {**said["B"], "keys": {"A": "00", **said["B"]["keys"]}}})
    with pytest.raises(FrameError, match="site 'C' is not both"):
        agreed_terms({name: said[name] for name in "AB"} | {"A": agreed})


def test_a_site_that_is_missing_or_fails_is_named(tmp_path):
    made = [site(name, tmp_path) for name in SITES]
    with pytest.raises(FrameError, match=r"site 'C' did not answer; no row was read"):
        ask(Street(*made[:2]), tmp_path, timeout=0.5)
    with pytest.raises(FrameError, match=r"site 'B' did not answer \(a node: out of memory\)"):
        ask(Street(*made, broken=[(TERMS, "B")]), tmp_path)
    with pytest.raises(FrameError, match="two nodes say they are site 'A'"):
        ask(Street(made[0], *made), tmp_path)
    with pytest.raises(FrameError, match=r"'B': out of memory; nothing was combined.*A\.json"):
        ask(Street(*made, broken=[(MESSAGE, "B")]), tmp_path)
    with pytest.raises(FrameError, match="there already"):
        ask(Street(*made), tmp_path)
    late = dp.site_release(
        "~ a + b",
        rows("B"),
        tmp_path / "B.json",
        site="B",
        session="s-1",
        codebook=CB,
        protocol="full",
        budget=dp.ZCDP(0.5),
    )
    assert dp.combine([late, *(tmp_path / "letters").iterdir()]).release.shared.sites == SITES


def test_a_folder_is_left_only_where_letters_were_asked_for(tmp_path):
    made = [site(name, tmp_path) for name in SITES]
    with pytest.raises(FrameError, match="did not answer"):
        ask(Street(*made[:2]), tmp_path, timeout=0.5)
    assert not (tmp_path / "letters").exists()
    (tmp_path / "letters").mkdir()
    with pytest.raises(FrameError, match="did not answer"):
        ask(Street(*made[:2]), tmp_path, timeout=0.5)
    assert (tmp_path / "letters").is_dir()


def test_a_site_that_falls_silent_is_named(tmp_path):
    made = [site(name, tmp_path) for name in SITES]
    with pytest.raises(FrameError, match="'C': it did not answer in time; nothing was combined"):
        ask(Street(*made, silent=[(MESSAGE, "C")]), tmp_path, timeout=2)


@pytest.mark.parametrize("terms", [None, [], {}, {"protocol": "full", "keys": {}}])
def test_terms_of_another_version_are_refused(terms, tmp_path):
    class Older:
        site = "B"

        def answer(self, question, asked):
            return {"site": "B", "terms": terms}

    with pytest.raises(FrameError, match="site 'B' uses another version"):
        ask(Street(site("A", tmp_path), Older(), site("C", tmp_path)), tmp_path)


def test_strangers_are_not_asked_for_letters(tmp_path):
    street = Street(site("D", tmp_path), *(site(name, tmp_path) for name in SITES))
    assert len(ask(street, tmp_path)) == len(SITES)
    assert (MESSAGE, "D") not in street.asked


def test_letters_of_other_terms_are_not_combined(tmp_path):
    made = [site(name, tmp_path) for name in SITES]
    others = tmp_path / "others"
    others.mkdir()
    wrong = site("B", others, formula="~ a")
    agreed = agreed_terms({"B": wrong.answer(TERMS, {"session": "s-1"})["terms"]})
    text = wrong.answer(MESSAGE, agreed)["letter"]
    street = Street(*made)
    answer = street.sites[101].answer

    class Changed:
        site = "B"

        def answer(self, question, asked):
            said = answer(question, asked)
            return said | {"letter": text} if question == MESSAGE else said

    street.sites[101] = Changed()
    with pytest.raises(FrameError, match="'B': its message is of other terms: formula is ~ a"):
        ask(street, tmp_path)
    assert read_message(tmp_path / "letters" / "A.json").site == "A"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"protocol": "secure_sum"}, "needs key="),
        ({"protocol": "secure_sum", "key": "k"}, "needs either cards="),
        ({"protocol": "secure_sum", "key": "k", "cards": ["c"], "sites": SITES}, "needs either"),
        ({"protocol": "secure_sum", "key": "k", "sites": ("B", "C")}, "is not among them"),
        ({"protocol": "secure_sum", "key": "k", "sites": SITES}, "needs ledger=, a file"),
        (
            {"protocol": "cape", "key": "k", "cards": ["c"], "ledger": dp.Ledger(eps=1.0)},
            "needs ledger=, a file",
        ),
        ({"protocol": "full", "key": "k"}, "are not for protocol='full'"),
    ],
)
def test_keys_that_make_no_sense(change, said, tmp_path):
    protocol = change.pop("protocol")
    _, chosen, terms = state(
        "~ a",
        site="A",
        session="s",
        protocol=protocol,
        codebook=CB,
        verb="pca",
        budget=dp.ZCDP(1.0),
        adjacency="replace",
        options={},
    )
    with pytest.raises(ArgumentError, match=said):
        SiteAnswers("A", chosen, terms, tmp_path / "a", print, **change)
