import copy
import os
import pickle

import numpy as np
import pytest
from scipy import stats

from dpmodels.errors import ArgumentError, PrivacyError
from dpmodels.noise import secure, seeded
from dpmodels.noise.entropy import _ZEROS

WORDS = 200_000


@pytest.mark.parametrize("bit", range(64))
def test_every_bit_is_fair(bit):
    words = seeded(11).words(WORDS)
    ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
    # Binomial; 64 tests, each with false-alarm rate 1e-8.
    assert stats.binomtest(ones, WORDS).pvalue > 1e-8


def test_bytes_are_uniform_and_successive_bytes_independent():
    stream = seeded(12).words(WORDS).view(np.uint8)
    pairs = np.bincount(stream[::2].astype(int) * 256 + stream[1::2], minlength=65536)
    expected = stream.size / 2 / 65536
    # Chi-square on 65,535 degrees of freedom, false-alarm rate 1e-8.
    assert ((pairs - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-8, 65535)


def test_two_secure_sources_differ():
    # Equal with probability 2^-256.
    assert (secure().words(4) != secure().words(4)).any()


def test_a_seed_repeats_and_another_seed_does_not():
    assert (seeded(5).words(100) == seeded(5).words(100)).all()
    assert (seeded(5).words(4) != seeded(6).words(4)).any()
    assert (seeded(5).words(4) != seeded(-5).words(4)).any()
    assert (seeded(np.int64(5)).words(4) == seeded(5).words(4)).all()


def test_the_stream_does_not_depend_on_how_it_is_asked_for():
    sizes = [1, 0, 3, len(_ZEROS) // 8 + 1, 2 * len(_ZEROS) // 8, 1]
    words = seeded(7).words(sum(sizes))
    source = seeded(7)
    assert (np.concatenate([source.words(size) for size in sizes]) == words).all()


def test_words_are_the_callers_own():
    source = seeded(1)
    first = source.words(8)
    copied = first.copy()
    source.words(8)
    assert (first == copied).all()
    assert first.dtype == np.uint64


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", [secure, lambda: seeded(1)])
def test_a_source_cannot_be_duplicated(make, duplicate):
    with pytest.raises(PrivacyError, match="same noise twice"):
        duplicate(make())


def test_a_source_does_not_cross_a_fork(monkeypatch):
    source = secure()
    source.words(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(PrivacyError, match="child process"):
        source.words(1)


def test_repr_shows_no_key(monkeypatch):
    key = bytes(range(32))
    monkeypatch.setattr(os, "urandom", lambda count: key[:count])
    text = repr(secure())
    assert key.hex() not in text
    assert str(key) not in text
    assert "AES-256-CTR" in text
    assert "not private" in repr(seeded(1))


def test_secure_takes_256_fresh_bits_from_the_system(monkeypatch):
    values = []
    monkeypatch.setattr(os, "urandom", lambda count: values.append(count) or bytes(count))
    secure()
    secure()
    assert values == [32, 32]


@pytest.mark.parametrize("seed", [None, 1.0, "1", True, np.True_])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ArgumentError, match="write an integer"):
        seeded(seed)
