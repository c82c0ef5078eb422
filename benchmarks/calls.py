"""How many functions of the package, and files, a call of a verb and its print run through.

Of a second call, so that imports and first uses are left out. Comprehensions, generators and
lambdas are counted beside the functions with a name.

    python benchmarks/calls.py            # dp_mean, dp_lm and dp_pca
    python benchmarks/calls.py --list     # each function of dp_pca, by file
"""

import argparse
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import dpmodels as dp

PACKAGE = str(Path(dp.__file__).parent)
FORMULAS = {"dp_mean": "x0 ~ .", "dp_lm": "x0 ~ .", "dp_pca": "~ ."}


def functions_by_file(job):
    """Return the functions of the package that a job runs, by file."""
    found = defaultdict(dict)

    def trace(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            name = code.co_filename.removeprefix(PACKAGE + "/")
            found[name][code] = found[name].get(code, 0) + 1

    sys.setprofile(trace)
    try:
        job()
    finally:
        sys.setprofile(None)
    return found


def call_and_print(verb, columns, frame, codebook):
    """Call a verb with some columns and print its result."""
    options = {"codebook": codebook.select(columns), "eps": 1.0, "delta": 1e-6}
    str(getattr(dp, verb)(FORMULAS[verb], frame[columns], **options))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true")
    listed = parser.parse_args().list
    names = [f"x{i}" for i in range(5)]
    frame = pd.DataFrame(np.random.default_rng(0).random((10_000, 5)), columns=names)
    frame["g"] = np.resize(["a", "b"], len(frame))
    book = dp.codebook({**dict.fromkeys(names, (0, 1)), "g": ["a", "b"]})
    print(f"{'':10s}{'functions':>10s}{'others':>8s}{'files':>7s}")
    for verb in FORMULAS:
        columns = ["x0", "g"] if verb == "dp_mean" else names
        job = partial(call_and_print, verb, columns, frame, book)
        job()
        found = functions_by_file(job)
        codes = [code for functions in found.values() for code in functions]
        named = sum(not code.co_name.startswith("<") for code in codes)
        print(f"{verb:10s}{named:10d}{len(codes) - named:8d}{len(found):7d}")
        if listed and verb == "dp_pca":
            for name in sorted(found):
                print(name)
                for code, calls in found[name].items():
                    print(f"    {code.co_qualname}, line {code.co_firstlineno}: {calls}")


if __name__ == "__main__":
    main()
