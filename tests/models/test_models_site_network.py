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
    values = {"session": "s-1", "codebook": CB, "verb": "pca", "adjacency": "replace"} | change
    values |= {"budget": values.get("budget", dp.ZCDP(0.5)), "protocol": protocol}
    formula, words = values.pop("formula", "~ a + b"), values.pop("options", {})
    keys, is_folder = {}, values.pop("in_rounds", False)
    if protocol in KEYED or isinstance(protocol, SecureSum):
        keys["key"] = folder / f"{name}.key"
        if handed and not keys["key"].exists():
            dp.site_key(name, keys["key"])
        if handed:
            keys["sites"] = SITES
        else:
            keys["cards"] = [folder / f"{site}.key.card" for site in SITES]
        ledger = ledger_of(name, folder)
    _, chosen, terms = state(formula, site=name, **values, options=words)
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
        **values,
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
            values = self.sites[node]
            self.asked.append((question, values.site))
            if (question, values.site) in self.silent:
                continue
            if (question, values.site) in self.broken:
                self.said.append((node, {"failure": "out of memory"}))
                continue
            answer = values.answer(question, json.loads(json.dumps(plain)))
            self.said.append((node, json.loads(json.dumps(answer))))

    def arrived(self):
        messages_said, self.said = self.said, []
        return messages_said


def ask(street, folder, session="s-1", timeout=60):
    return ask_sites(street, SITES, session, folder / "letters", timeout)


@pytest.mark.parametrize("handed", [True, False])
@pytest.mark.parametrize("protocol", ["full", "dpdispca", "cape", "secure_sum"])
def test_the_same_release_as_of_files(protocol, handed, tmp_path):
    if not handed:
        for name in SITES:
            dp.site_key(name, tmp_path / f"{name}.key")
    messages = [site(name, tmp_path, protocol=protocol, handed=handed) for name in SITES]
    with dp.simulation(seed=3):
        fit = dp.combine(ask(Street(*messages), tmp_path))
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
    alone_result = dp.combine([alone / f"{name}.json" for name in SITES])
    assert np.array_equal(fit.release.second, alone_result.release.second)
    assert fit.release.shared == alone_result.release.shared


def test_letters_that_leave_are_those_that_stay(tmp_path):
    letters = ask(Street(*(site(name, tmp_path) for name in SITES)), tmp_path)
    assert [letter.read_bytes() for letter in letters] == [
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
    assert [sum(bool(entry.events) for entry in ledger.entries) for ledger in ledgers] == [1, 1, 1]
    # The last answer tells the sites that it is over.
    assert not any(ledger.unfinished() for ledger in ledgers)
    assert not any("private" in (tmp_path / f"{name}.key").read_text("utf-8") for name in SITES)


@pytest.mark.product
def test_an_exchange_that_stopped_goes_on(tmp_path):
    network = in_rounds(tmp_path)
    with pytest.raises(FrameError, match="'B': out of memory"):
        ask(Street(*network, broken=[(MESSAGE, "B")]), tmp_path)
    sent = (tmp_path / "letters" / "message-1-A.json").read_bytes()
    fit = dp.combine(ask(Street(*network), tmp_path))
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
    quorum = of_quorum(tmp_path)
    fit = dp.combine(ask_quorum(Away(*quorum, turns=turns, late=late), tmp_path))
    ledgers = [dp.Ledger.open(tmp_path / f"{name}.ledger") for name in SITES]
    assert [sum(bool(entry.events) for entry in ledger.entries) for ledger in ledgers] == [1, 1, 1]
    views = fit.release.shared.sees
    assert (f"(some without {missed})" in views) == bool(missed)
    assert fit.release.rows == 180
    assert not any("private" in (tmp_path / f"{name}.key").read_text("utf-8") for name in SITES)


@pytest.mark.product
def test_more_sites_than_agreed_end_a_run_which_goes_on_later(tmp_path):
    turns = {(MESSAGE, "B"): {2}, (MESSAGE, "C"): {2}}
    quorum = of_quorum(tmp_path)
    with pytest.raises(FrameError, match="site 'B': it did not answer in time"):
        ask_quorum(Away(*quorum, turns=turns), tmp_path)
    assert not (tmp_path / "letters" / "answer-2.json").exists()
    assert dp.combine(ask_quorum(Street(*quorum), tmp_path)).release.rows == 180


@pytest.mark.product
def test_a_site_that_missed_the_first_round_stays_out(tmp_path):
    street = Away(*of_quorum(tmp_path), turns={(MESSAGE, "B"): {1}})
    fit = dp.combine(ask_quorum(street, tmp_path))
    assert fit.release.rows == 120
    assert "without 'B'" in fit.release.shared.sees
    assert not dp.Ledger.open(tmp_path / "B.ledger").entries


@pytest.mark.product
def test_a_site_opens_a_round_for_one_list_alone(tmp_path):
    quorum = of_quorum(tmp_path)
    terms = {message.site: message.answer(TERMS, {"session": "s-1"})["terms"] for message in quorum}
    agreed, folder = agreed_terms(terms), tmp_path / "study"
    folder.mkdir()
    for message in quorum:
        letter = message.answer(MESSAGE, agreed)["letter"]
        (folder / f"message-1-{message.site}.json").write_text(letter, encoding="utf-8")
    assert isinstance(dp.combine(folder), dp.sites.OpenRound)
    of_all = (folder / "present-1.json").read_text("utf-8")
    (folder / "present-1.json").unlink()
    (folder / "message-1-C.json").unlink()
    dp.combine(folder, without=["C"])
    of_two = (folder / "present-1.json").read_text("utf-8")
    for strange in ("", "{}", of_all[:-2], (folder / "message-1-A.json").read_text("utf-8")):
        assert "refusal" in quorum[0].answer(OPENING, {**agreed, "present": strange})
    opened = quorum[0].answer(OPENING, {**agreed, "present": of_two})
    assert quorum[0].answer(OPENING, {**agreed, "present": of_two}) == opened
    assert "letter" in opened
    assert "refusal" in quorum[0].answer(OPENING, {**agreed, "present": of_all})
    assert "refusal" in quorum[2].answer(OPENING, {**agreed, "present": of_two})


@pytest.mark.product
def test_an_answer_of_another_exchange_is_refused(tmp_path):
    first, two = tmp_path / "one", tmp_path / "two"
    for folder in (first, two):
        folder.mkdir()
    ask(Street(*in_rounds(first)), first)
    network = in_rounds(two)
    agreed = agreed_terms(
        {message.site: message.answer(TERMS, {"session": "s-1"})["terms"] for message in network}
    )
    assert "letter" in network[0].answer(MESSAGE, agreed)
    strange = (first / "letters" / "answer-1.json").read_text("utf-8")
    for answer in (strange, "", "{}", strange[:-2]):
        assert "refusal" in network[0].answer(MESSAGE, {**agreed, "answers": [answer]})
    assert [file.name for file in (two / "A.rounds").iterdir()] == ["message-1-A.json"]


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"formula": "~ a"}, "'A' and 'B' do not state the same: formula is ~ a and not ~ a"),
        ({"budget": dp.ZCDP(0.6)}, "guarantee is"),
        ({"options": {"ncomp": 1}}, "options ncomp is 1 and not None"),
        ({"protocol": "dpdispca"}, "protocol name is dpdispca and not full"),
        ({"session": "s-2"}, "'B' refuses: its session is 's-2'"),
    ],
)
def test_a_mismatch_is_found_before_a_row_is_read(change, message, tmp_path):
    ledgers = [dp.Ledger(budget=dp.ZCDP(1.0)) for _ in SITES]
    unread = [iter(()) for _ in SITES]
    participants = [
        site(name, tmp_path, unread[i], ledger=ledgers[i], **(change if name == "B" else {}))
        for i, name in enumerate(SITES)
    ]
    street = Street(*participants)
    with pytest.raises(FrameError, match=message):
        ask(street, tmp_path)
    assert {question for question, _ in street.asked} == {TERMS}
    assert not any(ledger.entries for ledger in ledgers)
    assert not any(participant.path.exists() for participant in participants)


def test_a_site_does_what_it_stated_and_nothing_else(tmp_path):
    ledger = dp.Ledger(budget=dp.ZCDP(9.0))
    participant = site("A", tmp_path, ledger=ledger)
    agreed = agreed_terms({"A": participant.answer(TERMS, {"session": "s-1"})["terms"]})
    for change, message in [
        ({"formula": "~ a"}, "formula is ~ a and not"),
        ({"guarantee": ["ZCDP", {"rho": 9.0}]}, "guarantee is"),
        ({"keys": {"A": "00"}}, "keys A is stated by one"),
        ({"options": None}, "options is None"),
        ({"more": 1}, "more is stated by one"),
    ]:
        answer = participant.answer(MESSAGE, agreed | change)
        assert "letter" not in answer
        assert f"it does not agree: {message}" in answer["refusal"]
    assert "session" in participant.answer(MESSAGE, {})["refusal"]
    assert not ledger.entries
    assert not participant.path.exists()


def test_a_session_is_answered_once(tmp_path):
    ledger = dp.Ledger(budget=dp.ZCDP(9.0))
    participant = site("A", tmp_path, ledger=ledger)
    agreed = agreed_terms({"A": participant.answer(TERMS, {"session": "s-1"})["terms"]})
    assert "letter" in participant.answer(MESSAGE, agreed)
    letter = participant.path.read_bytes()
    for question, answered in [(MESSAGE, agreed), (TERMS, agreed), (MESSAGE, agreed)]:
        answer = participant.answer(question, answered)
        assert set(answer) == {"site", "refusal"}
        assert "already" in answer["refusal"]
    again = site("A", tmp_path, ledger=ledger)
    assert "already" in again.answer(MESSAGE, agreed)["refusal"]
    assert len(ledger.entries) == 1
    assert participant.path.read_bytes() == letter


def test_errors_quote_neither_rows_nor_files(tmp_path, caplog):
    def broken():
        raise RuntimeError(f"row 7 is {SECRET}")
        yield

    missing = tmp_path / "patients.csv"
    for name, data in (("A", broken()), ("B", {"a": [SECRET]}), ("C", str(missing))):
        participant = site(name, tmp_path, data)
        agreed = agreed_terms({name: participant.answer(TERMS, {"session": "s-1"})["terms"]})
        with caplog.at_level(logging.DEBUG):
            answer = participant.answer(MESSAGE, agreed)
        assert "it cannot answer" in answer["refusal"]
        assert str(SECRET) not in str(answer) + caplog.text
        assert "patients" not in str(answer)


def test_a_folder_that_is_missing_stops_all_before_a_row_is_read(tmp_path):
    participants = [
        site(name, tmp_path / "not there" if name == "B" else tmp_path) for name in SITES
    ]
    street = Street(*participants)
    with pytest.raises(FrameError, match=r"'B' refuses: it cannot answer \(FrameError\)"):
        ask(street, tmp_path)
    assert {question for question, _ in street.asked} == {TERMS}


def test_a_letter_that_a_crash_left_unseen_is_shown_and_not_written_again(tmp_path, monkeypatch):
    participants = {name: site(name, tmp_path, protocol="secure_sum") for name in SITES}
    options = {"session": "s-1"}
    agreed = agreed_terms(
        {
            name: participant.answer(TERMS, options)["terms"]
            for name, participant in participants.items()
        }
    )

    def dies(*arguments, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpmodels.sites.message.publish", dies)
    with pytest.raises(KeyboardInterrupt):
        participants["A"].answer(MESSAGE, agreed)
    monkeypatch.undo()
    assert not (tmp_path / "A.json").exists()
    assert "has answered" in participants["A"].answer(MESSAGE, agreed)["refusal"]
    assert read_message(tmp_path / "A.json").site == "A"
    assert len(participants["A"].ledger.entries) == 1


def test_keys_that_are_not_those_named_are_refused(tmp_path):
    participants = {name: site(name, tmp_path, protocol="secure_sum") for name in SITES}
    messages = {
        name: participant.answer(TERMS, {"session": "s-1"})["terms"]
        for name, participant in participants.items()
    }
    agreed = agreed_terms(messages)
    keys = agreed["keys"]
    for changed in (
        {"A": keys["A"], "B": keys["B"]},
        {**keys, "D": keys["C"]},
        {**keys, "A": keys["B"]},
        {**keys, "B": keys["A"]},
        {**keys, "B": "no key"},
        None,
    ):
        answer = participants["A"].answer(MESSAGE, {**agreed, "keys": changed})
        assert set(answer) == {"site", "refusal"}
    assert "private" in (tmp_path / "A.key").read_text("utf-8")
    with pytest.raises(FrameError, match="another key of site 'A'"):
        agreed_terms(
            {**messages, "B": {**messages["B"], "keys": {"A": "00", **messages["B"]["keys"]}}}
        )
    with pytest.raises(FrameError, match="site 'C' is not both"):
        agreed_terms({name: messages[name] for name in "AB"} | {"A": agreed})


def test_a_site_that_is_missing_or_fails_is_named(tmp_path):
    participants = [site(name, tmp_path) for name in SITES]
    with pytest.raises(FrameError, match=r"site 'C' did not answer; no row was read"):
        ask(Street(*participants[:2]), tmp_path, timeout=0.5)
    with pytest.raises(FrameError, match=r"site 'B' did not answer \(a node: out of memory\)"):
        ask(Street(*participants, broken=[(TERMS, "B")]), tmp_path)
    with pytest.raises(FrameError, match="two nodes say they are site 'A'"):
        ask(Street(participants[0], *participants), tmp_path)
    with pytest.raises(
        FrameError,
        match=r"'B': out of memory; nothing was combined.*A\.json.*takes them with those",
    ):
        ask(Street(*participants, broken=[(MESSAGE, "B")]), tmp_path)
    with pytest.raises(FrameError, match="there already"):
        ask(Street(*participants), tmp_path)
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
    participants = [site(name, tmp_path) for name in SITES]
    with pytest.raises(FrameError, match="did not answer"):
        ask(Street(*participants[:2]), tmp_path, timeout=0.5)
    assert not (tmp_path / "letters").exists()
    (tmp_path / "letters").mkdir()
    with pytest.raises(FrameError, match="did not answer"):
        ask(Street(*participants[:2]), tmp_path, timeout=0.5)
    assert (tmp_path / "letters").is_dir()


def test_a_site_that_falls_silent_is_named(tmp_path):
    participants = [site(name, tmp_path) for name in SITES]
    with pytest.raises(FrameError, match="'C': it did not answer in time; nothing was combined"):
        ask(Street(*participants, silent=[(MESSAGE, "C")]), tmp_path, timeout=2)


@pytest.mark.guarding
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
    participants = [site(name, tmp_path) for name in SITES]
    alternatives = tmp_path / "others"
    alternatives.mkdir()
    wrong = site("B", alternatives, formula="~ a")
    agreed = agreed_terms({"B": wrong.answer(TERMS, {"session": "s-1"})["terms"]})
    text = wrong.answer(MESSAGE, agreed)["letter"]
    street = Street(*participants)
    answer = street.sites[101].answer

    class Changed:
        site = "B"

        def answer(self, question, asked):
            reply = answer(question, asked)
            return reply | {"letter": text} if question == MESSAGE else reply

    street.sites[101] = Changed()
    with pytest.raises(FrameError, match="'B': its message is of other terms: formula is ~ a"):
        ask(street, tmp_path)
    assert read_message(tmp_path / "letters" / "A.json").site == "A"


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_keys_that_make_no_sense(change, message, tmp_path):
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
    with pytest.raises(ArgumentError, match=message):
        SiteAnswers("A", chosen, terms, tmp_path / "a", print, **change)
