"""User-supplied mechanisms for tests: two that keep their claim, and many that do not."""

import math
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dpmodels import mechanisms
from dpmodels.mechanisms import MomentMechanism, MomentNoise, user_supplied
from dpmodels.mechanisms.add_noise import laplace_multipliers
from dpmodels.privacy import gaussian_multiplier


@dataclass
class Equal(MomentMechanism):
    """Noise that is spherical for the Frobenius norm of the sum of z z'."""

    factor: float = 1.0
    name = "equal"
    law = "gaussian"

    def plan(self, facts, guarantee):
        sd = self.factor * gaussian_multiplier(guarantee) * math.sqrt(8)
        off = sd / math.sqrt(2)
        return MomentNoise(sd, off, sd, off)


class EqualLaplace(Equal):
    """The same with Laplace noise: entries of z z' on and above the diagonal, in L1 norm."""

    name = "equal_laplace"
    law = "laplace"

    def plan(self, facts, guarantee):
        # A vector of norm 1 has an L1 norm of at most its root of the number of columns.
        limit = 2 * (1 + math.sqrt(facts.columns) + (facts.columns + 1) / 2)
        sd = math.sqrt(2) * limit * laplace_multipliers(guarantee)[0]
        return MomentNoise(sd, sd, sd, sd)


class TooLittle(Equal):
    name = "too_little"

    def plan(self, facts, guarantee):
        return MomentNoise(*(0.5 * sd for sd in vars(super().plan(facts, guarantee)).values()))


class Halved(Equal):
    """It plans enough and adds half of it."""

    name = "halved"

    def release(self, moments, sd, draw):
        return super().release(moments, 0.5 * sd, draw)


class Doubled(Equal):
    """It doubles what it adds noise to."""

    name = "doubled"

    def release(self, moments, sd, draw):
        return super().release(2 * moments, sd, draw)


class Alike(Equal):
    """The same draw in all entries."""

    name = "alike"

    def release(self, moments, sd, draw):
        return moments + draw(1.0) * sd


class OwnBits(Equal):
    """Noise from another generator."""

    name = "own_bits"

    def release(self, moments, sd, draw):
        return super().release(moments, sd, lambda sd: np.random.default_rng().normal(scale=sd))


class Writes(Equal):
    """It overwrites the moments, which are a copy."""

    name = "writes"

    def release(self, moments, sd, draw):
        moments += super().release(0 * moments, sd, draw)
        return moments


class Seldom(Equal):
    """It tells the moments once in six releases, where columns are correlated."""

    name = "seldom"

    def release(self, moments, sd, draw):
        reported = draw(1.0) > 1 and moments[1, 2] != 0
        return super().release(moments, sd, draw) + 1e6 * reported * moments


class Fickle(Equal):
    """Another plan at every call."""

    name = "fickle"

    def plan(self, facts, guarantee):
        self.factor *= 1.1
        return super().plan(facts, guarantee)


class Quotes(Equal):
    """It fails with the rows in its message."""

    name = "quotes"

    def release(self, moments, sd, draw):
        raise ValueError(f"cannot use {moments.tolist()}")


class Lopsided(Equal):
    name = "lopsided"

    def release(self, moments, sd, draw):
        return moments + np.triu(draw(sd))


class NoPlan(Equal):
    name = "no_plan"

    def plan(self, facts, guarantee):
        return None


class Negative(Equal):
    name = "negative"

    def plan(self, facts, guarantee):
        return MomentNoise(1.0, 1.0, -1.0, math.nan)


class FailingPlan(Equal):
    name = "failing_plan"

    def plan(self, facts, guarantee):
        return 1 / 0


@contextmanager
def registered(*kinds):
    """Register classes, and take them out again."""
    known_values, remaining = dict(user_supplied._REGISTERED), dict(user_supplied._PASSED)
    try:
        for kind in kinds:
            mechanisms.register(kind)
        yield
    finally:
        for table, before in (
            (user_supplied._REGISTERED, known_values),
            (user_supplied._PASSED, remaining),
        ):
            table.clear()
            table.update(before)
