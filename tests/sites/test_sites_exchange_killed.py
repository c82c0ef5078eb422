"""Sites and aggregator of an exchange, killed at any call of the system: nothing counts twice."""

import os
import random
import re
import signal
import time

import numpy as np
import pytest
from exchange_cases import study

import dpmodels as dp
from dpmodels.errors import FrameError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
CALLS = ("open", "posix_fallocate", "fsync", "link", "replace", "unlink")
KILLED = 9


def dying_at(step):
    """Let this process die at the given call of the system, before it or after it."""
    count = [0]
    for name in CALLS:
        real = getattr(os, name)

        def wrapped(*inputs, real=real, **words):
            count[0] += 1
            if 2 * count[0] - 1 == step:
                os._exit(KILLED)
            try:
                return real(*inputs, **words)
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


def turn_or_refusal(made, site, **verb):
    """A turn; an exchange that cannot go on states what was charged."""
    try:
        return made.turn(site, **verb)
    except FrameError as error:
        refusal = str(error)
    assert re.search("cannot go on.*stays charged once", refusal)
    return None


def site_dies(folder, step, number=1, **verb):
    """Kill a site in its turn of a round, then go on; whether it died, and whether it went on."""
    site_study = study(folder)
    for _ in range(number - 1):
        site_study.turns(**verb)
        site_study.combine()
    died = killed(step, lambda: site_study.turn("A", **verb))
    message = site_study.message(number, "A")
    text = message.read_bytes() if message.exists() else None
    goes_on = turn_or_refusal(site_study, "A", **verb) is not None
    if goes_on:
        assert text in (None, message.read_bytes())
        assert site_study.finish(**verb).release.rows == 900
        assert site_study.charges() == [1, 1, 1]
    else:
        assert text is None
        assert site_study.charges()[0] == 1
    return died, goes_on


def steps_until_the_end(run, limit=400, value=1):
    """Run for every step, until the process lives to its end; return what came of those before."""
    outcomes = []
    for step in range(1, limit, value):
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


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 9))
def test_a_site_that_is_killed_in_any_round_goes_on(number, tmp_path):
    for step in range(5, 100, 23):
        died, _ = site_dies(tmp_path / str(step), step, number, verb="cov")
        assert died or step > 40


@pytest.mark.slow
def test_an_aggregator_that_is_killed_in_any_round_writes_the_same_answers(tmp_path):
    site_study = study(tmp_path)
    for number in range(1, 9):
        site_study.turns(verb="cov")
        before = site_study.shown()
        for step in range(1, 12):
            assert killed(step, site_study.combine) or step > 4
            fit = site_study.combine()
            answer = site_study.answer(number).read_bytes()
            site_study.answer(number).unlink()
            assert site_study.shown() == before
            site_study.combine()
            assert site_study.answer(number).read_bytes() == answer
            if step < 11:
                site_study.answer(number).unlink()
    assert fit.release.rows == 900


@pytest.mark.parametrize("step", [9, 40])
def test_a_site_that_is_killed_goes_on(step, tmp_path):
    site_dies(tmp_path, step)


def aggregator_dies(result, text, step):
    """Kill the aggregator while it writes an answer; the next gives what it would have given."""
    for file in result.folder.iterdir():
        file.unlink()
    for name, content in text.items():
        (result.folder / name).write_bytes(content)
    died = killed(step, result.combine)
    return died, result.combine()


@pytest.mark.product
def test_an_aggregator_that_is_killed_at_any_call_gives_the_same_result(tmp_path):
    site_study = study(tmp_path)
    with dp.options(clipping=False):  # In one round
        site_study.turns()
    text = site_study.shown()
    fit = site_study.combine()

    def run(step):
        died, again = aggregator_dies(site_study, text, step)
        assert np.array_equal(again.release.second, fit.release.second)
        return died, True

    assert len(steps_until_the_end(run)) > 5


def shot(work, delay):
    """Do work in a process that gets a SIGKILL after so many seconds; whether it was in time."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(4)
        os._exit(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def shot_exchange(result, source, verb, longest):
    """Kill a site and the aggregator in each turn of an exchange; return kills and the result."""
    kills = 0
    for _ in range(40):
        site, smallest = source.choice(result.sites), len(list(result.folder.glob("answer-*")))
        kills += shot(lambda site=site: result.turn(site, **verb), source.uniform(0, longest))
        if not all(turn_or_refusal(result, site, **verb) for site in result.sites):
            return kills, None
        kills += shot(result.combine, source.uniform(0, longest))
        fit = result.combine()
        if not isinstance(fit, dp.sites.OpenRound):
            return kills, fit
        assert len(list(result.folder.glob("answer-*"))) >= smallest
    raise AssertionError("an exchange without an end")


@pytest.mark.slow
@pytest.mark.parametrize("dropouts", [0, 1])
def test_processes_killed_in_every_round_go_on_or_are_refused(dropouts, tmp_path):
    """Real processes, by SIGKILL: the exchange ends with one charge of each site, or is refused."""
    source, kills, ended = random.Random(9), 0, 0
    sites = tuple("ABC" if not dropouts else "ABCD")
    verb = {"verb": "cov", "protocol": dp.sites.SecureSum(dropouts=dropouts)}
    for number in range(12):  # An exchange that is refused ends with few kills.
        if number >= 3 and kills >= 20 and ended:
            break
        site_study = study(tmp_path / str(number), sites)
        extra, fit = shot_exchange(site_study, source, verb, 0.1)
        kills += extra
        assert max(site_study.charges()) == 1
        if fit is not None:
            assert site_study.charges() == [1] * len(sites)
            assert fit.release.info.name == "rounds"
            assert len(list(site_study.folder.glob("answer-*"))) == 8
            ended += 1
    assert kills >= 20
    assert ended >= 1
