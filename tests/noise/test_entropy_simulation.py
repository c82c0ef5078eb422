import threading

import numpy as np
import pytest

from dpmodels.errors import ArgumentError
from dpmodels.noise import discrete_gaussian, seeded, simulating, simulation, source


def _release():
    return discrete_gaussian(1000.0, 50, source())


def test_a_block_repeats_and_its_releases_differ():
    with simulation(seed=3):
        first, second = _release(), _release()
    with simulation(seed=3):
        again = _release(), _release()
    assert (first != second).any()
    assert (first == again[0]).all()
    assert (second == again[1]).all()


def test_a_block_is_the_seeded_stream():
    with simulation(seed=4):
        words = source().words(10)
    assert (words == seeded(4).words(10)).all()


def test_outside_a_block_nothing_repeats():
    assert not simulating()
    assert source() is not source()
    # Equal with probability 2^-256.
    assert (source().words(4) != source().words(4)).any()


def test_nested_blocks_restore_the_outer_stream_where_it_was():
    plain = seeded(1)
    before, after = plain.words(5), plain.words(5)
    with simulation(seed=1):
        outer = source()
        assert (outer.words(5) == before).all()
        with simulation(seed=2):
            assert source() is not outer
            assert (source().words(5) == seeded(2).words(5)).all()
        assert simulating()
        assert source() is outer
        assert (source().words(5) == after).all()
    assert not simulating()


def test_an_exception_ends_the_block():
    with pytest.raises(KeyError), simulation(seed=1):
        raise KeyError
    assert not simulating()


def test_a_thread_started_inside_is_outside():
    recorded = []
    with simulation(seed=1):
        thread = threading.Thread(target=lambda: recorded.append(simulating()))
        thread.start()
        thread.join()
    assert recorded == [False]


@pytest.mark.parametrize("seed", [None, 1.5, "1", True, np.array([1, 2])])
def test_the_seed_is_checked_before_the_block_begins(seed):
    with pytest.raises(ArgumentError, match="write an integer"):
        simulation(seed=seed)
    assert not simulating()
