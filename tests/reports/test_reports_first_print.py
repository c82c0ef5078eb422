"""Reports are imported at the first print, whoever prints first."""

import pickle
import subprocess
import sys

import pytest

import dpmodels as dp

FIRST_PRINT = """
import pickle, sys, threading

fit = pickle.loads(sys.stdin.buffer.read())
assert "dpmodels.models" in sys.modules
assert "dpmodels.reports" not in sys.modules
printed, start = [None] * 8, threading.Barrier(8)

def print_first(place):
    start.wait()
    printed[place] = fit.summary().as_text()

threads = [threading.Thread(target=print_first, args=(place,)) for place in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(printed)) == 1
laid_out = {name for name in sys.modules if name.startswith("dpmodels.reports.")}
assert laid_out == {"dpmodels.reports.groups", "dpmodels.reports.header"}
sys.stdout.buffer.write(printed[0].encode("utf-8"))
"""


@pytest.mark.product
def test_threads_of_a_fresh_process_print_a_pickled_result_at_once():
    book = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    rows = {"income": [30e3, 81e3] * 500, "sex": ["F", "M"] * 500}
    fit = dp.dp_mean("income ~ sex", rows, codebook=book, eps=1.0)
    command = [sys.executable, "-c", FIRST_PRINT]
    done = subprocess.run(command, input=pickle.dumps(fit), capture_output=True, check=True)
    assert done.stdout.decode("utf-8") == fit.summary().as_text()
