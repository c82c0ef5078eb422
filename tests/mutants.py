"""Mutation testing: change the package in seeded places, and count the changes that tests notice.

`python tests/mutants.py --seed 1` takes 50 mutants of each of two groups of modules and runs, in a
copy of the tree, for each of them the tests of its module and folder, for those that survive the
whole ordinary suite, and at last those marked `product`. A test notices a mutant if by itself it
fails with the mutant, or does not end, and passes without it; a mutant that none notices within the
limit survives.
"""

import argparse
import contextlib
import difflib
import importlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import changed
from mutations import Mutant, mutants_of

ROOT = changed.ROOT
# Group A; group B are all other modules.
GUARDED = ("noise", "privacy", "mechanisms", "statistics", "inference")
# Imported once, before the processes that run tests are forked.
PRELOADED = ("scipy.stats", "pandas", "xarray", "statsmodels.api", "patsy", "hypothesis", "pytest")
STAGES = ("near", "all", "product")
ORDINARY = "not slow and not audit_full and not product and not site"
STORED = ("tests/golden/test_golden.py", "tests/contracts/test_contracts_stored.py")
# They read every file or card, and imports do not lead to them.
WHOLE = tuple(f"tests/house/test_{name}.py" for name in ("frozen", "defaults", "theory"))
MEMORY = 16 * 2**30
# Seconds for one test by itself.
ALONE = 120


def compiles(mutant):
    try:
        compile(mutant.applied((ROOT / mutant.file).read_bytes()), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def sample(seed, number):
    """Records of mutants, so many of each group, each place as likely as any other."""
    files = sorted(ROOT.glob("dpmodels/**/*.py"))
    guarded = [file for file in files if file.relative_to(ROOT).parts[1] in GUARDED]
    for group, members in (("A", guarded), ("B", [file for file in files if file not in guarded])):
        everything = [
            mutant
            for file in members
            for mutant in mutants_of(str(file.relative_to(ROOT)), file.read_bytes())
        ]
        random.Random(seed).shuffle(everything)
        for mutant, _ in zip(filter(compiles, everything), range(number), strict=False):
            yield {"group": group, **asdict(mutant), "killed_by": None, "ended": {}}


def tests_of_stage(name, stage):
    """The test files of a stage for a module, the nearest first, and the marks to run."""
    module, parts = changed.module_of(ROOT / name), Path(name).with_suffix("").parts[1:]
    folder = f"tests/{parts[0]}/"
    importing = set(changed.tests_of({module}))
    suite = (path for path in changed.modules().values() if path.name.startswith("test_"))

    def distance(test):
        is_imported = module in changed.imported(ROOT / test)
        is_beside = test.startswith(folder)
        return parts[-1] not in test, not is_beside, not is_imported, test not in importing, test

    tests = sorted((str(path.relative_to(ROOT)) for path in suite), key=distance)
    nearest = [test for test in tests if not all(distance(test)[:3])]
    if stage == "near":
        return [name, *nearest], ORDINARY
    if stage == "product":
        return [*STORED, *nearest], "product"
    first = (*STORED, *WHOLE)
    return [*first, *(test for test in tests if test not in (*first, *nearest))], ORDINARY


class Progress:
    """A plugin of pytest that sends the name of each test that starts, and what fails."""

    def __init__(self, end):
        self.end = end

    def pytest_runtest_logstart(self, nodeid):
        self.end.send(("running", nodeid))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.end.send(("failed", report.nodeid))

    pytest_collectreport = pytest_runtest_logreport


def run_tests(tests, marks, tree, end):
    """Run tests in a copy of the tree; in a process of its own."""
    import resource

    import pytest

    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    sys.path[:] = [str(tree), *(path for path in sys.path if not path.startswith(str(ROOT)))]
    sys.modules.pop("changed", None)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    options = ["-x", "-p", "no:cacheprovider", "-o", "addopts=", "--doctest-modules", "-m", marks]
    code = pytest.main([*options, *tests], plugins=[Progress(end)])
    end.send(("passed", "") if code in (0, 5) else ("failed", tests[0]))
    os._exit(0)


def outcome(tests, marks, tree, limit):
    """How tests end: "failed" or "passed", or "running" at the limit, and the name of the test."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=run_tests, args=(tests, marks, tree, sender)
    )
    process.start()
    sender.close()
    state, test, until = "running", tests[0], time.monotonic() + limit
    try:
        while state == "running" and receiver.poll(max(0.0, until - time.monotonic())):
            state, test = receiver.recv()
    except EOFError:
        state = "failed"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return state, test


class Copy:
    """A copy of the tree, in which one file at a time is changed."""

    def __init__(self, folder):
        # Tests that were tried without a mutant, and whether they failed.
        self.folder, self.failing, self.date = Path(folder), {}, 10**9
        command = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.folder / name)

    def write(self, name, code):
        """Write a file with a date that no compiled file of it has."""
        self.date += 10
        (self.folder / name).write_bytes(code)
        os.utime(self.folder / name, (self.date, self.date))

    def fails(self, test, marks):
        """Whether a test by itself fails, or does not end, with the file as it is now."""
        return outcome([test], marks, self.folder, ALONE)[0] != "passed"

    def verdict(self, mutant, stage, limit):
        """The test that notices a mutant, or None, and how the stage ended."""
        tests, marks = tests_of_stage(mutant.file, stage)
        code, ignored, until = (ROOT / mutant.file).read_bytes(), [], time.monotonic() + limit
        while True:
            self.write(mutant.file, mutant.applied(code))
            left = max(1.0, until - time.monotonic())
            state, test = outcome([*tests, *ignored], marks, self.folder, left)
            is_noticed = state != "passed" and self.fails(test, marks)
            self.write(mutant.file, code)
            if is_noticed and test not in self.failing:
                self.failing[test] = self.fails(test, marks)
            if is_noticed and not self.failing[test]:
                return test, "killed"
            if state != "failed":
                return None, "passed" if state == "passed" else "limit"
            ignored.append(f"--deselect={test}")


def difference(mutant):
    """The lines that a mutant changes, before and after."""
    code = (ROOT / mutant.file).read_bytes()
    texts = (text.decode("utf-8").splitlines() for text in (code, mutant.applied(code)))
    lines = list(difflib.unified_diff(*texts, n=0, lineterm=""))[3:]
    return "\n".join(f"    {line}" for line in lines)


def equivalent_suspected(mutant):
    """Whether only equal numbers are compared otherwise, or lengths are no longer compared."""
    operators = {mutant.before.count("="), mutant.after.count("=")}
    is_boundary = mutant.kind == "comparison" and len(operators) == 2
    line = (ROOT / mutant.file).read_bytes()[: mutant.start].rpartition(b"\n")[2]
    return is_boundary or line.endswith(b"strict=")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=50, help="in each group")
    parser.add_argument("--limit", type=float, default=900, help="seconds of a stage for a mutant")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--again", type=Path, help="run the survivors of such a file once more")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    args = parser.parse_args()
    for name in PRELOADED:
        importlib.import_module(name)
    again = json.loads(args.again.read_text("utf-8")) if args.again else None
    records = again or list(sample(args.seed, args.mutants))
    with tempfile.TemporaryDirectory() as folder:
        tree = Copy(folder)
        for stage in args.stages:
            for record in (record for record in records if not record["killed_by"]):
                mutant = Mutant(**{name: record[name] for name in Mutant.__annotations__})
                record["killed_by"], record["ended"][stage] = tree.verdict(
                    mutant, stage, args.limit
                )
                record["suspected"] = equivalent_suspected(mutant)
                record["difference"] = difference(mutant)
                args.out.write_text(json.dumps(records, indent=1), "utf-8")
                survived = "survived" + ", equivalent?" * record["suspected"]
                print(
                    f"{mutant.file}:{mutant.line} {mutant.kind}: {record['killed_by'] or survived}"
                )
                print(record["difference"], flush=True)
            for group in sorted({record["group"] for record in records}):
                noticed = [bool(line["killed_by"]) for line in records if line["group"] == group]
                print(f"group {group}: {sum(noticed)} of {len(noticed)} killed", flush=True)


if __name__ == "__main__":
    main()
