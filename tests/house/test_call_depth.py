"""How many functions of the package a call runs through, and in how many files."""

import sys
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp

PACKAGE = str(Path(dp.__file__).parent)
RNG = np.random.default_rng(1)
ROWS = pd.DataFrame(RNG.normal(size=(1_000, 6)).clip(-4, 4), columns=[f"x{i}" for i in range(6)])
NUMBERS = dp.codebook.uniform(ROWS.columns, (-4, 4))
GROUPED = ROWS.assign(g=RNG.choice(["a", "b"], len(ROWS)))
BOOK = dp.codebook(NUMBERS, g=["a", "b"])
ONCE = {"codebook": BOOK, "eps": 1, "mechanism": "moments"}
# At most twenty functions and three files more than a call ran through when it was last measured.
CALLS = {
    "dp_pca": (372, 57, lambda: dp.dp_pca("~ .", ROWS, codebook=NUMBERS, eps=1, delta=1e-6)),
    "dp_lm": (299, 58, lambda: dp.dp_lm("x0 ~ x1 + x2", GROUPED, **ONCE)),
    "dp_lm in rounds": (418, 65, lambda: dp.dp_lm("x0 ~ x1 + x2", GROUPED, codebook=BOOK, eps=1)),
    "dp_mean": (289, 53, lambda: dp.dp_mean("x0", GROUPED, codebook=BOOK, eps=1)),
    "dp_table": (266, 54, lambda: dp.dp_table("~ g", GROUPED, codebook=BOOK, eps=1)),
}


def functions_run(call):
    """Return the functions of the package that a call runs, by file; not lambdas or generators."""
    run = defaultdict(set)

    def profile(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name[0] != "<":
            run[code.co_filename].add((code.co_name, code.co_firstlineno))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return run


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_through_few_functions(name):
    most_functions, most_files, call = CALLS[name]
    # Which steps a call needs, and whether it warns, differs with the noise.
    with dp.simulation(seed=1):
        call()  # What is remembered or loaded at the first call
        run = functions_run(call)
    assert sum(map(len, run.values())) <= most_functions
    assert len(run) <= most_files
