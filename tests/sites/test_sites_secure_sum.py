from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from dpmodels.errors import ArgumentError, FrameError
from dpmodels.mechanisms import Facts, Gauss
from dpmodels.mechanisms.counts import Gaussian
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import secure, seeded
from dpmodels.privacy import ZCDP, adjacency
from dpmodels.sites import Cape, SecureSum
from dpmodels.sites.key_file import (
    KeyShare,
    PairStream,
    Participant,
    Secrets,
    join_secret,
    pair_key,
    public_bytes,
    split_secret,
)
from dpmodels.sites.packing import Payload, draw, scales, unit
from dpmodels.sites.protocol import Joint
from dpmodels.sites.summing import add, from_words, words_needed

FALSE_ALARM = 1e-6


def plan_of(parts):
    facts = CountFacts(1, parts, False, adjacency("replace"))
    return Gaussian().plan(facts, ZCDP(0.5))


def keys_of(sites):
    private = [X25519PrivateKey.generate() for _ in range(sites)]
    return private, [public_bytes(value) for value in private]


def secrets_of(private, public, session=b""):
    names = tuple(map(str, range(len(public))))
    sites = (Participant(names, tuple(public), *of) for of in enumerate(private))
    return [Secrets(site, session) for site in sites]


def sent_by(protocol, plan, exact, words, session=b"s"):
    """What each site sends, and the integers behind it with their noise."""
    private, public = keys_of(len(exact))
    secrets = secrets_of(private, public, session)
    share = protocol.share(plan, len(exact))
    sent, open_ = [], []
    for place, value in enumerate(exact):
        payload = Payload(np.array(value, dtype=object), 1)
        vector = protocol.send(payload, plan, secrets[place], words, seeded(place))
        noise = draw(scales(plan) * share, seeded(place)).astype(object)
        sent.append(vector)
        open_.append(payload.exact + noise)
    return sent, open_, private, public


def total_of(sent):
    total = np.zeros_like(sent[0])
    for value in sent:
        add(total, value)
    return total


@st.composite
def cases(draw):
    sites, parts = draw(st.integers(2, 7)), draw(st.integers(2, 5))
    words = draw(st.sampled_from([1, 2]))
    edge = 2 ** (64 * words - 2) // sites - 2**56
    numbers = st.integers(-edge, edge)
    lists = st.lists(numbers, min_size=parts, max_size=parts)
    return words, draw(st.lists(lists, min_size=sites, max_size=sites))


@pytest.mark.parametrize("kind", [SecureSum, Cape])
@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_the_sum_is_that_of_the_integers_bit_for_bit(kind, case):
    words, exact = case
    plan = plan_of(len(exact[0]))
    sent, open_, _, _ = sent_by(kind(colluders=1), plan, exact, words)
    assert from_words(total_of(sent)).tolist() == sum(open_).tolist()


@pytest.mark.parametrize("kind", [SecureSum, Cape])
def test_floats_of_two_machines_give_one_sum(kind):
    """Scales that differ in the last bit: the masks of a pair cancel all the same."""
    protocol, plan, exact = kind(), plan_of(40), [[10**6 + k for k in range(40)]] * 3
    secrets = secrets_of(*keys_of(3))
    sent, total = [], np.zeros(40, dtype=object)
    for place, value in enumerate(exact):
        scale = plan.scale * (1 + 2.0**-52 * (place == 1))
        left = replace(plan, scale=scale)
        payload = Payload(np.array(value, dtype=object), 1)
        sent.append(protocol.send(payload, left, secrets[place], 1, seeded(place)))
        noise = draw(scales(left) * protocol.share(left, 3), seeded(place))
        total = total + payload.exact + noise.astype(object)
    assert from_words(total_of(sent)).tolist() == total.tolist()


def test_noise_of_many_sites_of_which_one_is_honest_has_room():
    """Each adds the noise of a release of its own: the sum of 10,000 goes beyond 64 bits."""
    facts = Facts(3, adjacency("replace"), centred=True)
    plan = Gauss().plan(facts, ZCDP(3e-11))
    sites, result = 10_000, scales(plan)
    total = draw(np.tile(result, sites), seeded(1)).reshape(sites, -1).astype(object).sum(axis=0)
    assert abs(total).max() > 2**63
    assert sites * unit(plan) < 2**52
    assert words_needed(plan, [1] * sites) == 2
    assert words_needed(plan, [1, 1]) == 1
    assert words_needed(Gauss().plan(facts, ZCDP(0.5)), [50] * sites) == 1


def test_one_message_is_uniform_and_tells_nothing_of_its_integers():
    plan = plan_of(4000)
    sent, _, _, _ = sent_by(SecureSum(), plan, [[0] * 4000, [0] * 4000], 1)
    uniform = sent[0][0].astype(np.float64) / 2.0**64
    assert kstest(uniform, "uniform").pvalue > FALSE_ALARM


def test_masks_never_repeat():
    """A repeated word among 30,000 random ones has probability 3e-11."""
    private, public = keys_of(4)
    values = []
    for session in (b"one", b"two"):
        for a in range(4):
            for b in range(a + 1, 4):
                words = PairStream(pair_key(private[a], public[b], session)).words(2500)
                second = PairStream(pair_key(private[b], public[a], session)).words(2500)
                assert (words == second).all()
                values.append(words)
    joined = np.concatenate(values)
    assert len(np.unique(joined)) == joined.size


def test_two_releases_of_the_same_rows_share_no_message():
    plan = plan_of(50)
    exact = [[7] * 50, [8] * 50, [9] * 50]
    first, second = (sent_by(SecureSum(), plan, exact, 1)[0] for _ in range(2))
    assert not any((a == b).any() for a in first for b in second)


def test_a_site_that_does_not_answer_is_detected():
    plan = plan_of(3)
    for protocol in (SecureSum(), Cape()):
        sent, _, _, _ = sent_by(protocol, plan, [[1, 2, 3]] * 4, 1)
        with pytest.raises(FrameError, match="1 of 4 sites did not answer"):
            protocol.whole(Joint(Gaussian(), plan, tuple("ABCD")), sent[1:], [1, 1, 1])


def test_fewer_shares_than_needed_do_not_give_the_secret():
    secret = bytes(31) + b"x"
    for needed in (2, 3, 5):
        shares = split_secret(secret, 6, needed)
        with pytest.raises(ArgumentError, match="not of one secret"):
            join_secret(shares[: needed - 1], needed - 1)


def test_the_largest_secret_is_one_and_the_next_number_none():
    """Of polynomials without a slope, whose shares are all the secret itself."""
    largest = 2**256 - 1
    for needed in (1, 2):
        shares = [KeyShare(place, largest) for place in (1, 2)]
        assert join_secret(shares, needed) == b"\xff" * 32
        shares = [KeyShare(place, largest + 1) for place in (1, 2)]
        with pytest.raises(ArgumentError, match="not of one secret"):
            join_secret(shares, needed)


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 6), st.integers(0, 3), st.randoms())
def test_enough_shares_give_the_secret_back_and_fewer_do_not(secret, needed, more, random):
    shares = list(split_secret(secret, needed + more, needed))
    random.shuffle(shares)
    assert join_secret(shares[:needed], needed) == secret
    with pytest.raises(ArgumentError, match="needed"):
        join_secret(shares[: needed - 1], needed)
    if needed > 1:
        forged = [shares[0]._replace(value=shares[0].value + 2**400), *shares[1:needed]]
        with pytest.raises(ArgumentError, match="not of one secret"):
            join_secret(forged, needed)


def test_words_that_make_no_sense_are_refused():
    with pytest.raises(ArgumentError, match="at least one site has to be honest"):
        SecureSum(colluders=2).participants(("A", "B"))
    with pytest.raises(ArgumentError, match="two sites or more"):
        SecureSum(colluders=0).participants(("A",))
    with pytest.raises(ArgumentError, match="fewer must be allowed"):
        SecureSum(colluders=1, dropouts=2).participants(tuple("ABCD"))
    with pytest.raises(ArgumentError, match="whole number from 0"):
        Cape(colluders=-1).participants(("A", "B"))
    with pytest.raises(FrameError, match="not an X25519 key"):
        pair_key(X25519PrivateKey.generate(), b"short", b"")


def test_the_law_of_the_noise_in_the_sum():
    """KS at false alarm 1e-6; the sum of shares has the variance stated."""
    plan = plan_of(6000)
    for protocol in (SecureSum(colluders=1), Cape(colluders=2), SecureSum(colluders=0)):
        names = tuple("ABCDE")
        payload = Payload(np.zeros(6000, dtype=object), 0)
        secrets = secrets_of(*keys_of(5))
        sent = [protocol.send(payload, plan, of_site, 1, secure()) for of_site in secrets]
        release = protocol.whole(Joint(Gaussian(), plan, names), sent, [0] * 5)
        honest = 5 - protocol.colluders
        assert release.noise_sd == pytest.approx(plan.noise_sd * (5 / honest) ** 0.5, rel=1e-5)
        assert kstest(release.values / release.noise_sd, "norm").pvalue > FALSE_ALARM
