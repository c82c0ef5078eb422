"""Exchanges that go on without sites that are missing: the sum, and a late message stays hidden."""

import itertools
import shutil
from base64 import b64encode

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from exchange_cases import AGREED, rewrite, study
from scipy.stats import kstest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.sites import SecureSum, quorum
from dpmodels.sites.key_file import PairStream, Participant, Secrets, public_bytes
from dpmodels.sites.message import copy_file, read_message
from dpmodels.sites.quorum import Quorum, least_honest
from dpmodels.sites.summing import add, from_words, negative, to_words

pytestmark = pytest.mark.expensive
FIVE = tuple("ABCDE")
DROPPING = {"protocol": SecureSum(dropouts=1)}
SHAPE = (2, 6)


def members(sites):
    private = [X25519PrivateKey.generate() for _ in range(sites)]
    public = tuple(public_bytes(key) for key in private)
    names = tuple(map(str, range(sites)))
    return [Participant(names, public, place, key) for place, key in enumerate(private)]


def sent_by(rule, people, exact, session=b"round 1"):
    """What each site sends of its integers, and its shares."""
    sent = []
    for member, integers in zip(people, exact, strict=True):
        masked = to_words(np.array(integers, dtype=object), 2)
        for mask in SecureSum().masks(Secrets(member, session), SHAPE):
            add(masked, mask)
        flat = rule.conceal(masked, member, session)
        sent.append((flat[:12].reshape(SHAPE), flat[12:].reshape(rule.shares_shape)))
    return sent


def openings_of(rule, people, sent, present, givers, session=b"round 1"):
    shares = np.stack([sent[place][1] for place in present])
    return {place: rule.opened(shares, present, people[place], session) for place in givers}


@pytest.mark.parametrize(("sites", "needed", "missing"), [(4, 3, (2,)), (6, 4, (0, 5)), (3, 3, ())])
def test_a_round_gives_the_sum_of_the_sites_that_are_present(sites, needed, missing):
    rule, people = Quorum(sites, needed), members(sites)
    exact = [[10**place + k for k in range(6)] for place in range(sites)]
    sent = sent_by(rule, people, exact)
    present = [place for place in range(sites) if place not in missing]
    # Of those that sent a message, any that suffice open the round.
    openings = openings_of(rule, people, sent, present, present[-needed:])
    total = negative(rule.pads(openings, present, SHAPE))
    for place in present:
        add(total, sent[place][0])
    assert (
        from_words(total).tolist() == np.sum([exact[place] for place in present], axis=0).tolist()
    )


def least_learned(sites, colluders, dropouts, reported):
    """Of a sum that a coalition can open, how many honest sites are in it; None without one.

    `told` are the sets that each honest site, from 0, was told are present.
    """
    honest = range(sites - colluders)
    needed = len(honest) - dropouts
    pads = {j for j in honest if sum(j in value for value in reported) >= needed}

    def open_pair(i, j):
        inputs = (
            sum(a in value and b not in value for value in reported) for a, b in ((i, j), (j, i))
        )
        return any(number >= needed for number in inputs)

    assert not any(open_pair(*pair) for pair in itertools.combinations(pads, 2))
    closed = all(open_pair(i, j) for i in pads for j in honest if j not in pads)
    return len(pads) if pads and closed else None


@pytest.mark.parametrize(("sites", "colluders", "dropouts"), [(4, 1, 1), (5, 1, 1), (5, 0, 2)])
def test_whatever_sites_are_told_no_sum_has_fewer_honest_sites(sites, colluders, dropouts):
    """All ways to tell each site another list, for Theorem 81."""
    everyone, choices = range(sites), []
    for site in range(sites - colluders):
        sizes = range(sites - dropouts, sites + 1)
        lists = itertools.chain.from_iterable(itertools.combinations(everyone, n) for n in sizes)
        choices.append([set(value) for value in lists if site in value])
    smallest = {
        least_learned(sites, colluders, dropouts, message)
        for message in itertools.product(*choices)
    }
    assert min(smallest - {None}) >= least_honest(sites - colluders, dropouts)


@pytest.mark.product
def test_a_late_message_is_uniform_for_whoever_has_all_openings():
    """False alarms: 1e-6. What is opened of others reveals nothing about a site that is missing."""
    rule, people = Quorum(4, 3), members(4)
    exact = [[7] * 6] * 4
    late = []
    for number in range(300):
        session = b"round %d" % number
        sent = sent_by(rule, people, exact, session)
        openings = openings_of(rule, people, sent, [0, 1, 3], [0, 1, 3], session)
        # The masks of the late site with the others are opened; its pad is not.
        opened = negative(rule.pads(openings, [0, 1, 3], SHAPE))
        for place in (0, 1, 3):
            add(opened, sent[place][0])
        assert from_words(opened).tolist() == [21] * 6
        everything = sent[2][0].copy()
        for place in (0, 1, 3):
            mask = SecureSum().masks(Secrets(people[2], session), SHAPE)
            add(everything, negative(mask[place if place < 2 else place - 1]))
        late.append(everything.ravel() / 2.0**64)
    assert kstest(np.concatenate(late), "uniform").pvalue > 1e-6


def test_without_a_pad_a_late_message_would_be_open(monkeypatch):
    """The planted fault: masks with the others are all that hides it, and these are opened."""
    rule, people = Quorum(4, 3), members(4)
    monkeypatch.setattr(quorum, "add", lambda total, addend: None)
    flat = [value[0] for value in sent_by(rule, people, [[7] * 6] * 4)]
    late = flat[2]
    for mask in SecureSum().masks(Secrets(people[2], b"round 1"), SHAPE):
        add(late, negative(mask))
    assert from_words(late).tolist() == [7] * 6


def test_no_seed_and_no_keystream_is_used_in_two_rounds(tmp_path, monkeypatch):
    keys, init = [], PairStream.__init__

    def recorded(self, key):
        keys.append(key)
        init(self, key)

    monkeypatch.setattr(PairStream, "__init__", recorded)
    site_study = study(tmp_path, FIVE)
    site_study.turns(verb="cov", **DROPPING)
    site_study.combine()
    # 10 pairs, 5 pads, and what each of 5 has for each of 5; all else is the same again.
    assert len(set(keys)) == 10 + 5 + 25
    before = set(keys)
    keys.clear()
    site_study.turns(verb="cov", **DROPPING)
    site_study.combine()
    keys.clear()
    site_study.turns(verb="cov", **DROPPING)
    assert not before & set(keys)


def finished(result, gone, first, **words):
    """Take all turns, without a site from its round on; return the result."""
    for _ in range(40):
        number = len(list(result.folder.glob("answer-*"))) + 1
        for site in result.sites:
            if site not in gone or number < first:
                result.turn(site, **DROPPING, **words)
        fit = dp.combine(result.folder, without=gone)
        if not isinstance(fit, dp.sites.OpenRound):
            return fit
    raise AssertionError("an exchange without an end")


@pytest.fixture(scope="module")
def dropped(tmp_path_factory):
    """An exchange of seven rounds that a site leaves in the third."""
    site_study = study(tmp_path_factory.mktemp("dropped"), FIVE)
    return site_study, finished(site_study, ("B",), 3, verb="cov")


@pytest.mark.product
def test_an_exchange_ends_without_a_site_that_left(dropped):
    result, fit = dropped
    assert fit.release.info.name == "rounds"
    assert "some without 'B'" in fit.release.shared.sees
    assert result.charges() == [1] * 5
    assert fit.release.count == pytest.approx(1_200, abs=150)
    np.testing.assert_allclose(fit.cov.to_numpy(), np.diag([0.25, 0.04]), atol=2.0)


@pytest.mark.product
def test_a_site_that_left_comes_back_for_the_next_round(tmp_path):
    site_study = study(tmp_path, FIVE)
    words = {"verb": "cov", **DROPPING}
    for number in range(1, 5):
        away = ("B",) if number == 2 else ()
        for _ in range(2):
            for site in FIVE:
                if site not in away:
                    site_study.turn(site, **words)
            dp.combine(site_study.folder, without=away)
    assert site_study.answer(4).exists()
    assert not copy_file(site_study.key("B"), 2).exists()
    assert site_study.turn("B", **words).name == "message-5-B.json"


def test_a_late_message_of_a_round_opens_nothing(tmp_path):
    """A site whose message came after the round ended waits for the next, and opens nothing."""
    site_study = study(tmp_path, FIVE)
    for site in "ACDE":
        site_study.turn(site, **DROPPING, verb="cov")
    assert isinstance(site_study.combine(), dp.sites.OpenRound)
    dp.combine(site_study.folder, without=["B"])
    site_study.turn("B", **DROPPING, verb="cov")
    assert site_study.message(1, "B").exists()
    assert not copy_file(site_study.key("B"), 1, "opening").exists()
    for site in "ACDE":
        site_study.turn(site, **DROPPING, verb="cov")
    dp.combine(site_study.folder)
    with pytest.raises(FrameError, match=r"round 1 ended without site 'B'.*stays charged once"):
        site_study.turn("B", **DROPPING, verb="cov")


@pytest.mark.product
def test_one_sum_of_the_sites_that_remain_has_their_rows_and_noise(tmp_path):
    site_study = study(tmp_path, FIVE)
    fit = finished(site_study, ("C",), 1, verb="mean", formula="~ a")
    assert fit.release.shared.sites == tuple("ABDE")
    assert fit.release.rows == 1_200
    assert site_study.charges() == [1, 1, 0, 1, 1]
    with pytest.raises(FrameError, match=r"round 1 ended without site 'C'.*Nothing was charged"):
        site_study.turn("C", **DROPPING, verb="mean", formula="~ a")


def test_a_quorum_that_is_missed_leaves_the_round_open(tmp_path):
    site_study = study(tmp_path, FIVE)
    for site in "ABC":
        site_study.turn(site, **DROPPING)
    state = dp.combine(site_study.folder, without=["D"])
    assert state.missing == ("D", "E")
    assert not list(site_study.folder.glob("present-*"))


@pytest.mark.parametrize("without", [("B", "C"), ("X",), ("B", "X")])
def test_more_sites_than_the_noise_allows_for_are_not_given_up(without, tmp_path):
    site_study = study(tmp_path, FIVE)
    site_study.turn("A", **DROPPING)
    with pytest.raises(ArgumentError, match=r"at most 1 of the sites.*dropouts=1"):
        dp.combine(site_study.folder, without=without)


def test_a_quorum_needs_more_than_twice_as_many_honest_sites(tmp_path):
    site_study = study(tmp_path)
    with pytest.raises(ArgumentError, match="fewer must be allowed"):
        site_study.turn("A", **DROPPING)
    assert site_study.charges() == [0, 0, 0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"present": ["A", "B", "C"]}, "and 4 have to answer in each round"),
        ({"present": ["B", "A", "C", "D"]}, "not of this round"),
        ({"present": ["A", "B", "C", "C", "D"]}, "not of this round"),
        ({"present": ["A", "B", "C", "X"]}, "not of this round"),
        ({"answers": "0" * 64}, "not of this round: answers"),
        ({"round": 2}, "not of this round: round"),
        ({"session": "another"}, "not of this round: session"),
        ({"shape": [2, 1]}, "another shape"),
    ],
)
def test_a_changed_list_of_sites_is_not_opened(change, says, tmp_path):
    site_study = study(tmp_path, FIVE)
    site_study.turns(**DROPPING)
    site_study.combine()
    rewrite(site_study.folder / "present-1.json", **change)
    with pytest.raises(FrameError, match=rf"{says}.*stays charged once"):
        site_study.turn("A", **DROPPING)
    assert not copy_file(site_study.key("A"), 1, "opening").exists()


def test_a_site_opens_a_round_once(tmp_path):
    """A second list is not opened, not even by a copy of the key from before."""
    site_study = study(tmp_path, FIVE)
    site_study.turns(**DROPPING)
    site_study.combine()
    older, first = (
        tmp_path / "older",
        site_study.turn("A", **DROPPING).parent / "opening-1-A.json",
    )
    content = first.read_bytes()
    older.mkdir()
    for name in ("site.key", "site.key.used", "site.key.round-1"):
        shutil.copy(site_study.key("A").with_name(name), older)
    listed = read_message(site_study.folder / "present-1.json")
    four = b64encode(listed.values[: 4 * len(listed.values) // 5]).decode()
    changes = {"present": ["A", "B", "C", "D"], "shape": [4, *listed.shape[1:]], "values": four}
    rewrite(site_study.folder / "present-1.json", **changes)
    first.unlink()
    with pytest.raises(FrameError, match="the opening of round 1 was made before"):
        site_study.turn("A", key=older / "site.key", **DROPPING)
    site_study.turn("A", **DROPPING)
    assert first.read_bytes() == content


def test_openings_of_different_lists_are_not_added(tmp_path):
    site_study = study(tmp_path, FIVE)
    site_study.turns(**DROPPING)
    site_study.combine()
    site_study.turns(**DROPPING)
    rewrite(site_study.folder / "opening-1-C.json", present=["A", "B", "C", "D"])
    with pytest.raises(FrameError, match="present is"):
        site_study.combine()
    assert not site_study.answer(1).exists()


def test_one_file_of_each_site_has_no_quorum(tmp_path):
    site_study = study(tmp_path, FIVE)
    with pytest.raises(ArgumentError, match="or the path of a folder"):
        site_study.turn("A", folder=tmp_path / "a.json", **DROPPING)
    with pytest.raises(ArgumentError, match="without= is for the folder"):
        dp.combine([tmp_path / "a.json"], without=["A"])


def test_the_noise_is_that_of_the_least_number_of_honest_sites():
    for sites in range(4, 12):
        for dropouts in range(1, sites):
            rule = SecureSum(dropouts=dropouts)
            if sites - 1 <= 2 * dropouts:
                continue
            assert rule.honest(sites) <= sites - 1 - dropouts
            assert (rule.honest(sites) == sites - 1 - dropouts) == (
                sites - 1 - dropouts > dropouts**2
            )


@pytest.mark.product
def test_what_a_key_had_is_removed_when_all_rounds_are_answered(dropped):
    result, _ = dropped
    for site in "ACDE":
        result.turn(site, **DROPPING, verb="cov")
        assert b"private" not in result.key(site).read_bytes()
        states = set(result.ledger(site).register()["state"])
        assert states == {"released"}
    assert read_message(copy_file(result.key("A"), 3)).shape[0] > 225
    assert AGREED["session"] == "trial 7"
