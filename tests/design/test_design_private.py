"""How rows that were bound are read."""

import threading

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.design.private import BLOCKS_A_TURN
from dpmodels.noise.lattice import Lattice


@pytest.mark.parametrize("parts", [1, 3])
def test_threads_are_for_more_than_one_part(monkeypatch, parts):
    lattice, started = Lattice(20, 1), []
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda self: (started.append(self.name), start(self))
    )
    rows = parts * BLOCKS_A_TURN * lattice.block_rows
    design = private_design("~ a", {"a": np.zeros(rows)}, dp.codebook(a=(-1, 1)))
    blocks = design.blocks(lambda block: int(block.shape[1]), lattice)
    assert [answer for answer, _ in blocks] == [lattice.block_rows] * parts * BLOCKS_A_TURN
    assert bool(started) == (parts > 1)
