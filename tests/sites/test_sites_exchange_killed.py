"""Sites and aggregator of an exchange, killed at any call of the system: nothing counts twice."""

import os
import re

import numpy as np
import pytest
from exchange_cases import study

from dpmodels.errors import FrameError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
CALLS = ("open", "posix_fallocate", "fsync", "link", "replace", "unlink")
KILLED = 9


def dying_at(step):
    """Let this process die at the given call of the system, before it or after it."""
    count = [0]
    for name in CALLS:
        real = getattr(os, name)

        def wrapped(*given, real=real, **words):
            count[0] += 1
            if 2 * count[0] - 1 == step:
                os._exit(KILLED)
            try:
                return real(*given, **words)
            finally:
                if 2 * count[0] == step:
                    os._exit(KILLED)

        setattr(os, name, wrapped)


def killed(step, work):
    """Do work in a process of its own that dies at a step; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            dying_at(step)
            work()
        except BaseException:
            os._exit(4)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED)
    return status == KILLED


def turn_or_refusal(made, site):
    """A turn; that the exchange cannot go on is said with what was charged."""
    try:
        return made.turn(site)
    except FrameError as error:
        refusal = str(error)
    assert re.search("cannot go on.*stays charged once", refusal)
    return None


def site_dies(folder, step):
    """Kill a site in its first turn, then go on; whether it died, and whether it could go on."""
    made = study(folder)
    died = killed(step, lambda: made.turn("A"))
    shown = made.message(1, "A").read_bytes() if made.message(1, "A").exists() else None
    goes_on = turn_or_refusal(made, "A") is not None
    if goes_on:
        assert shown in (None, made.message(1, "A").read_bytes())
        fit = made.finish()
        assert fit.nobs == 900
        assert made.charges() == [1, 1, 1]
    else:
        assert shown is None
        assert made.charges() == [1, 0, 0]
    return died, goes_on


def steps_until_the_end(run, most=400, each=1):
    """Run for every step, until the process lives to its end; return what came of those before."""
    outcomes = []
    for step in range(1, most, each):
        died, outcome = run(step)
        if not died:
            assert outcome
            return outcomes
        outcomes.append(outcome)
    raise AssertionError("the process never ended")


@pytest.mark.slow
def test_a_site_that_is_killed_at_any_call_goes_on_or_is_refused(tmp_path):
    outcomes = steps_until_the_end(lambda step: site_dies(tmp_path / str(step), step))
    assert len(outcomes) > 40
    assert outcomes.count(False) <= len(outcomes) / 4


@pytest.mark.parametrize("step", [9, 40])
def test_a_site_that_is_killed_goes_on(step, tmp_path):
    site_dies(tmp_path, step)


def aggregator_dies(made, shown, step):
    """Kill the aggregator while it writes an answer; the next gives what it would have given."""
    for file in made.folder.iterdir():
        file.unlink()
    for name, content in shown.items():
        (made.folder / name).write_bytes(content)
    died = killed(step, made.combine)
    return died, made.combine()


def test_an_aggregator_that_is_killed_at_any_call_gives_the_same_result(tmp_path):
    made = study(tmp_path)
    made.turns()
    shown = made.shown()
    fit = made.combine()

    def run(step):
        died, again = aggregator_dies(made, shown, step)
        assert np.array_equal(again.release.second, fit.release.second)
        return died, True

    assert len(steps_until_the_end(run)) > 5
