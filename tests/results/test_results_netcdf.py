"""Saved files: a digest covers all they say, and none is half written."""

import json

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.results.store import file_bytes, open_saved

ARRAYS = {
    "second": (("v", "w"), np.arange(6.0).reshape(2, 3)),
    "odd": (("v",), np.array([1.0, np.nan])),
}
CONTENT = file_bytes("dpmodels.test/1", json.dumps({"simulated": True, "name": "é"}), ARRAYS)


def same(first, second):
    arrays = [list(dataset.arrays.items()) for dataset in (first, second)]
    return first[:2] == second[:2] and all(
        name == again and np.array_equal(array, array_again, equal_nan=True)
        for (name, array), (again, array_again) in zip(*arrays, strict=True)
    )


def flips(content, step):
    for bit in range(0, 8 * len(content), step):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_noticed_or_says_nothing(step, tmp_path):
    path = tmp_path / "a.nc"
    path.write_bytes(CONTENT)
    first, refused, total = open_saved(path), 0, 0
    for changed in flips(CONTENT, step):
        path.write_bytes(changed)
        total += 1
        try:
            assert same(open_saved(path), first)
        except FrameError:
            refused += 1
    # Padding and sizes that no reader uses are the rest.
    assert refused > 0.8 * total


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"simulated": true', b'"simulated": fals'), (b"sha256", b"sha257"), (b"odd", b"odb")],
)
def test_careless_changes_are_noticed(old, new, tmp_path):
    assert old in CONTENT
    (tmp_path / "a.nc").write_bytes(CONTENT.replace(old, new))
    with pytest.raises(FrameError):
        open_saved(tmp_path / "a.nc")


def test_a_simulation_cannot_be_edited_into_a_release(tmp_path):
    with dp.simulation(seed=1):
        fit = dp.dp_mean("~ a", {"a": [0.1, 0.9]}, codebook=dp.codebook(a=(0, 1)), eps=1.0)
    fit.save(tmp_path / "a.nc")
    content = (tmp_path / "a.nc").read_bytes()
    changed = content.replace(b'"simulated": true', b'"simulated":false')
    assert changed != content
    (tmp_path / "b.nc").write_bytes(changed)
    with pytest.raises(FrameError, match="was changed after it was written"):
        dp.load(tmp_path / "b.nc")


def test_headers_that_announce_more_than_there_is_are_refused_at_once(tmp_path):
    path = tmp_path / "a.nc"
    for place in range(4, len(CONTENT) - 8, 4):
        path.write_bytes(CONTENT[:place] + b"\x7f\xff\xff\xff" + CONTENT[place + 4 :])
        try:
            open_saved(path)
        except FrameError:
            continue


def test_a_result_is_not_saved_over_another(tmp_path):
    book = dp.codebook(a=(0, 1))
    fits = [dp.dp_mean("~ a", {"a": [0.1, 0.9]}, codebook=book, eps=eps) for eps in (1.0, 2.0)]
    path = tmp_path / "a.nc"
    fits[0].save(path)
    with pytest.raises(FrameError, match="already exists"):
        fits[1].save(path)
    assert dp.load(path).release.guarantee.eps == 1.0
    fits[1].save(path, overwrite=True)
    assert dp.load(path).release.guarantee.eps == 2.0
    assert [file.name for file in tmp_path.iterdir()] == ["a.nc"]
