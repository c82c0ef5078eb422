"""A rare number and a rare label leave no trace outside the chunks."""

import gc
import logging
import traceback
import warnings

import numpy as np
import pytest

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, progress, require, to_codes, to_float

NUMBER = 918273.645
LABEL = "quokka-of-rottnest"


def _said(capsys, caplog, caught, texts):
    out, err = capsys.readouterr()
    warned = [str(warning.message) for warning in caught]
    return "\n".join([out, err, caplog.text, *warned, *texts])


@pytest.mark.parametrize("label", [LABEL, f'"{LABEL}\n{NUMBER}'])
def test_a_rare_cell_is_nowhere_told(make, kit, capsys, caplog, label):
    table = {name: list(cells) for name, cells in kit.table.items()}
    table["real"][2] = NUMBER
    table["text"][3] = label
    gc.freeze()  # what other tests left is not searched below
    texts = []
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = open_rows(make(table))
        texts += [repr(source), str(source)]
        for wrong in (("rael",), ("real", LABEL[:6])):
            with pytest.raises(FrameError) as raised:
                require(source, wrong)
            texts += traceback.format_exception(raised.value)[-1:]
        chunks = source.chunks(kit.names, 2)
        texts.append(repr(chunks))
        for chunk in progress(chunks, total=None, label="reading"):
            for values in chunk.values():
                to_float(values)
                to_codes(values, ("F", 1, True))
        del chunks
        gc.collect()
    reported = _said(capsys, caplog, caught, texts)
    assert str(NUMBER) not in reported
    assert LABEL not in reported


def test_errors_carry_no_cause_that_saw_a_cell(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a\n{LABEL}\n")
    with pytest.raises(FrameError) as raised:
        open_rows(path).chunks(("b",), 3)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_a_stream_of_cells_is_not_quoted():
    for data in ([LABEL], (NUMBER,), np.array([NUMBER]), [[NUMBER, LABEL]]):
        with pytest.raises(FrameError) as raised:
            open_rows(data).chunks(("x",), 3)
        assert str(NUMBER) not in str(raised.value)
        assert LABEL not in str(raised.value)
