"""The two laws of the noise floor as one family with rational parameters."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Law:
    """The law P(x) proportional to exp(-g(|x|)) on the integers, g(m) = linear m + quadratic m².

    Neither is below 0, nor both 0: the discrete Laplace law is (1/b, 0), the discrete Gaussian
    (0, 1/(2 sigma²)).
    """

    linear: Fraction
    quadratic: Fraction

    def exponent(self, magnitude: int) -> Fraction:
        """Give g(magnitude): convex, increasing, 0 at 0."""
        return magnitude * (self.linear + self.quadratic * magnitude)

    def slope(self, magnitude: int) -> Fraction:
        """Give the derivative of g at a magnitude."""
        return self.linear + 2 * self.quadratic * magnitude
