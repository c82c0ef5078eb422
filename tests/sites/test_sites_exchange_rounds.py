"""Mechanisms of several rounds through files: what they give in one process, and what is sent."""

import json
import shutil
from base64 import b64encode
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from exchange_cases import SITES, rewrite, rows_of, sealed, study

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.sites.key_file import PairStream
from dpmodels.sites.message import copy_file, read_message, values_of
from dpmodels.sites.summing import from_words

pytestmark = pytest.mark.expensive
COV = {"verb": "cov"}
# Of the mechanism, and one for counts of values beyond the bounds.
ROUNDS = 7 + 1
BUDGET = {"eps": 1.0, "delta": 1e-6}
BOOK = dp.codebook(a=(-10, 10), b=(-10, 10), y=(-20, 20), z=(0, 1))


def table(site, n_rows=300):
    rows = rows_of(site, n_rows)
    rng = np.random.default_rng(1_000 + ord(site))
    rows["y"] = 1 + 0.5 * rows["a"] - rows["b"] + rng.normal(0, 0.5, n_rows)
    ids = [f"{site}{at // 2}" for at in range(n_rows)]
    return rows | {"z": (rows["y"] > 3.5) * 1.0, "id": ids}


def certain(scale, size, entropy):
    """Noise of the right size that nobody draws, for values that can be compared."""
    return np.full(size, int(scale / 3), dtype=np.int64)


CASES = {
    "cov": ("~ a + b", {}),
    "pca": ("~ a + b + y", {"ncomp": 2}),
    "pca about zero": ("~ a + b", {"center": False}),
    "cov add-remove": ("~ a + b", {"adjacency": "add-remove"}),
    "cov persons": ("~ a + b", {"person": "id", "rows": 2}),
    "cov persons add-remove": ("~ a", {"person": "id", "rows": 2, "adjacency": "add-remove"}),
    "select persons": ("~ cut(a, [-10, 0, 3, 10])", {"person": "id", "rows": 2}),
    "lm": ("y ~ a + b", {}),
    "moments": ("~ a + b", {}),
    "glm": ("z ~ a + b", {"family": "binomial"}),
    "svm": ("(z > 0) ~ a + b", {}),
    "fdr": ("a + b + y ~ z", {}),
    "select": ("~ cut(a, [-10, 0, 3, 10])", {"k": 2}),
    "select add-remove": ("~ cut(a, [-10, 0, 3, 10])", {"k": 2, "adjacency": "add-remove"}),
}


@pytest.mark.product
@pytest.mark.parametrize("case", CASES)
def test_files_give_what_one_process_gives(case, tmp_path, monkeypatch):
    """Of noise that is not drawn the same values, so of drawn noise the same law."""
    formula, words = CASES[case]
    verb = case.split()[0]
    monkeypatch.setattr("dpmodels.sites.exchange.draw", lambda scales, _: (scales / 3).astype(int))
    monkeypatch.setattr("dpmodels.sites.packing.discrete_gaussian", certain)
    monkeypatch.setattr("dpmodels.sites.joint_rounds.discrete_gaussian", certain)
    sizes = dict(zip(SITES, (2_000, 900, 100), strict=True))
    rows = {site: table(site, size) for site, size in sizes.items()}
    unit = {name: words[name] for name in ("adjacency", "person", "rows") if name in words}
    site_study = study(tmp_path, **unit)
    words = {"codebook": BOOK, **words}
    for _ in range(80):
        for site in SITES:
            site_study.turn(site, data=rows[site], verb=verb, formula=formula, **words)
        fit = site_study.combine()
        if not isinstance(fit, dp.sites.OpenRound):
            break
    joint = getattr(dp, f"dp_{verb}")(formula, sites=rows, protocol="secure_sum", **words, **BUDGET)
    assert_equal(fit.release, joint.release)


def assert_equal(left, right):
    """All that two releases say of the rows and of the noise; one word may be two in a file."""
    for name in ("info", "events", "rows", "adjacency", "clipping"):
        assert getattr(left, name) == getattr(right, name)
    for name in ("count", "total", "second", "coefficients", "products", "scatters", "values"):
        np.testing.assert_array_equal(getattr(left, name, 0), getattr(right, name, 0))
    assert str(getattr(left, "noise", "")) == str(getattr(right, "noise", ""))
    assert replace(left.shared, size=0) == replace(right.shared, size=0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with the files of all its rounds, and its result."""
    site_study = study(tmp_path_factory.mktemp("finished"))
    states = []
    for _ in range(ROUNDS):
        site_study.turns(**COV)
        fit = site_study.combine()
        states.append(site_study.shown())
    return site_study, states, fit


@pytest.mark.product
def test_every_round_is_charged_once_and_sent_once(finished):
    result, states, fit = finished
    assert fit.release.info.name == "rounds"
    assert len(states[-1]) == ROUNDS * 4
    assert result.charges() == [1, 1, 1]
    lines = result.ledger("A").register()
    assert list(lines["state"]) == ["charged"] + ["released"] * ROUNDS
    sent = [read_message(copy_file(result.key("A"), number)) for number in range(1, ROUNDS + 1)]
    assert fit.release.shared.numbers == sum(message.shape[1] for message in sent)


@pytest.mark.product
def test_no_keystream_is_used_twice(tmp_path, monkeypatch):
    keys, init = [], PairStream.__init__

    def recorded(self, key):
        keys.append(key)
        init(self, key)

    monkeypatch.setattr(PairStream, "__init__", recorded)
    study(tmp_path).finish(**COV)
    # Each of the three pairs derives one key a round, on both sides.
    assert len(keys) == 2 * 3 * ROUNDS
    assert len(set(keys)) == 3 * ROUNDS


def test_sites_with_different_answers_send_words_that_do_not_add_up(tmp_path):
    """An aggregator that lies to one of two sites learns uniform words (Theorem 70)."""
    site_study = study(tmp_path, ("A", "B"))
    site_study.turns(**COV)
    site_study.combine()
    lie = tmp_path / "lie"
    shutil.copytree(site_study.folder, lie)
    rewrite(lie / "answer-1.json", number="0")
    values = [site_study.turn("A", **COV), site_study.turn("B", folder=lie, **COV)]
    shutil.copy(values[1], site_study.folder)
    with pytest.raises(FrameError, match="answers is"):
        site_study.combine()
    messages = [read_message(path) for path in values]
    total = sum(from_words(values_of(message, "words", message.shape)) for message in messages)
    # Of honest sums none has more than 100 bits; that of 57 uniform ones is not below 2^100.
    assert max(abs(int(word)) for word in total) > 2**100


@pytest.mark.product
def test_a_round_is_answered_once_whatever_other_answers_say(finished, tmp_path):
    """The aggregator cannot ask the same round of a site again, after another answer."""
    result, states, _ = finished
    for name, content in states[2].items():
        (tmp_path / name).write_bytes(content)
    rewrite(tmp_path / "answer-3.json", number="0")
    before = result.shown()
    with pytest.raises(FrameError, match=r"followed other answers.*stays charged once"):
        result.turn("A", folder=tmp_path, **COV)
    assert result.shown() == before


@pytest.mark.parametrize(
    "change",
    [
        {"round": 2},
        {"answers": "0" * 64},
        {"session": "trial 8"},
        {"site": "A"},
        {"basis": "0" * 64},
        {"keys": {"A": "00" * 32}},
        {"version": "0.0.1"},
        {"shape": [2, 1]},
        {"rows": 10},
    ],
)
def test_a_changed_answer_is_refused_by_a_site(change, finished, tmp_path):
    result, states, _ = finished
    for name, content in states[3].items():
        if name != "message-5-A.json":
            (tmp_path / name).write_bytes(content)
    rewrite(tmp_path / "answer-3.json", **change)
    with pytest.raises(FrameError, match="stays charged once"):
        result.turn("A", folder=tmp_path, **COV)


def test_answers_in_another_order_are_refused(finished, tmp_path):
    result, states, _ = finished
    for left, right in combinations(range(1, 5), 2):
        folder = tmp_path / f"{left}-{right}"
        folder.mkdir()
        names = {f"answer-{left}.json": f"answer-{right}.json"}
        names |= {new: old for old, new in names.items()}
        for name, content in states[4].items():
            (folder / names.get(name, name)).write_bytes(content)
        with pytest.raises(FrameError, match="is not the answer of round"):
            result.turn("A", folder=folder, **COV)
        with pytest.raises(FrameError, match="is not the answer of round"):
            dp.combine(folder)


def test_messages_of_another_round_are_refused(finished, tmp_path):
    _, states, _ = finished
    for replayed in (1, 2, 4):
        folder = tmp_path / str(replayed)
        folder.mkdir()
        for name, content in states[2].items():
            if name != "answer-3.json":
                (folder / name).write_bytes(content)
        content = states[4][f"message-{replayed}-B.json"]
        (folder / "message-3-B.json").write_bytes(content)
        with pytest.raises(FrameError, match=r"each site was charged once, at its start"):
            dp.combine(folder)
        assert not (folder / "answer-3.json").exists()


@pytest.mark.product
def test_answers_far_from_any_data_ask_for_the_same_budget(finished, tmp_path):
    """Whatever the answers are, sums have the planned sizes and noise, and no site fails."""
    site_study = study(tmp_path / "own")
    rng = np.random.default_rng(3)
    for number in range(1, ROUNDS + 1):
        site_study.turns(**COV)
        site_study.combine()
        plain = json.loads(site_study.answer(number).read_bytes())
        plain["number"] = "lie"
        size = plain["shape"][1]
        words = rng.integers(0, 2**64, (2, size), dtype=np.uint64)
        plain["values"] = b64encode(words.astype("<u8").tobytes()).decode()
        site_study.answer(number).write_bytes(sealed(plain))
    honest, _, _ = finished
    for number in range(1, 8):
        ours, reference = (
            read_message(copy_file(value.key("A"), number)).shape for value in (site_study, honest)
        )
        assert ours == reference
    assert site_study.charges() == [1, 1, 1]


@pytest.mark.product
def test_waiting_parties_exchange_by_themselves(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    site_study = study(tmp_path)
    with ThreadPoolExecutor(3) as pool:
        turns = [pool.submit(site_study.turn, site, wait=60.0, **COV) for site in SITES]
        fit = dp.combine(site_study.folder, wait=60.0)
        paths = [turn.result() for turn in turns]
    assert fit.release.info.name == "rounds"
    assert [path.name for path in paths] == [f"message-{ROUNDS}-{site}.json" for site in SITES]
