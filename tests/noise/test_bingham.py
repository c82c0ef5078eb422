import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from dpmodels.errors import ArgumentError
from dpmodels.noise import secure, seeded
from dpmodels.noise.bingham_frames import (
    bingham_coordinates,
    bingham_from_eigen,
    bingham_vector,
    envelope_spread,
)

# Each coordinate's mean square is held to 6.5 standard errors. Over at most 50 coordinates the
# normal false-alarm rate is 4e-9; 1e-6 leaves room for the skewness of squares.
LARGEST_Z = 6.5


def second_moments(deficits):
    """E x_i² under exp(-x' Lambda x), exactly: inverting a Laplace transform along its saddle.

    The normaliser at radius² r is the inverse transform of prod (s + lambda_i)^(-1/2), and its
    logarithmic derivative in lambda_i at r = 1 is the moment.
    """
    saddle = optimize.brentq(
        lambda s: np.sum(0.5 / (s + deficits)) - 1, 1e-9, deficits.size, xtol=1e-14
    )
    time = np.linspace(0, 4000, 160_001)
    points = saddle + 1j * time
    logarithm = 1j * time
    for deficit in deficits:
        logarithm = logarithm - 0.5 * np.log((points + deficit) / (saddle + deficit))
    density = np.exp(logarithm)
    total = integrate.trapezoid(density.real, time)
    return np.array(
        [
            integrate.trapezoid((density * 0.5 / (points + deficit)).real, time) / total
            for deficit in deficits
        ]
    )


def largest_z(draws, moments):
    squares = draws**2
    return (abs(squares.mean(0) - moments) / squares.std(0) * len(draws) ** 0.5).max()


def wrong_coordinates(values, draws, entropy):
    """Keep proposals by the wrong rule, which divides by (x' Omega x)^(d/2)."""
    generator = np.random.default_rng(0)
    dimension, deficits = values.size, values.max() - values
    spread = envelope_spread(deficits)
    proposals = generator.standard_normal((200_000, dimension))
    proposals /= np.sqrt(1 + 2 * deficits / spread)
    proposals /= np.linalg.norm(proposals, axis=1, keepdims=True)
    losses = proposals**2 @ deficits
    ratio = -losses - dimension / 2 * np.log(1 + 2 * losses / spread)
    return proposals[np.log(generator.random(200_000)) < ratio - ratio.max()][:draws]


def spectrum(dimension):
    """Eigenvalues at which no coordinate dominates: the hard range for a normaliser."""
    return dimension * np.linspace(1.5, 0, dimension) ** 2


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0, 7.0, 60.0])
def test_two_dimensions_have_the_von_mises_law_at_twice_the_angle(kappa):
    draws = bingham_coordinates(np.array([2 * kappa, 0.0]) - 3, 50_000, seeded(71))
    twice = 2 * np.arctan2(draws[:, 1], draws[:, 0])
    folded = np.arctan2(np.sin(twice), np.cos(twice))
    law = stats.vonmises(kappa) if kappa else stats.uniform(-np.pi, 2 * np.pi)
    # Kolmogorov-Smirnov, false-alarm rate 1e-7.
    assert stats.kstest(folded, law.cdf).pvalue > 1e-7
    sines = np.sin(twice / 2) ** 2
    mean = (1 - special.ive(1, kappa) / special.ive(0, kappa)) / 2
    # z-test at 6 standard errors, false-alarm rate below 1e-7.
    assert abs(sines.mean() - mean) < 6 * sines.std() / 50_000**0.5


@pytest.mark.product
@pytest.mark.parametrize("values", [[4.0, 1.0, -2.0], [-5.0, -5.0, -40.0], [0.3, 0.2, 0.1]])
def test_three_dimensions_agree_with_a_grid(values):
    rotation = special_rotation(3)
    matrix = rotation @ np.diag(values) @ rotation.T
    height, turn = np.meshgrid(
        np.polynomial.legendre.leggauss(200)[0], np.arange(400) * np.pi / 200, indexing="ij"
    )
    ring = np.sqrt(1 - height**2)
    points = np.stack([ring * np.cos(turn), ring * np.sin(turn), height])
    weights = np.polynomial.legendre.leggauss(200)[1][:, None] * np.exp(
        np.einsum("iab,ij,jab->ab", points, matrix, points) - max(values)
    )
    expected = np.einsum("iab,jab,ab->ij", points, points, weights) / weights.sum()
    entropy = seeded(72)
    draws = np.array([bingham_vector(matrix, entropy) for _ in range(4000)])
    products = np.einsum("ni,nj->nij", draws, draws)
    errors = products.std(0) / 4000**0.5
    # Nine z-tests at 6 standard errors: false-alarm rate below 1e-7.
    assert (abs(products.mean(0) - expected) < 6 * errors).all()


def special_rotation(dimension):
    return np.linalg.qr(np.random.default_rng(5).standard_normal((dimension, dimension)))[0]


@pytest.mark.expensive
@pytest.mark.parametrize("dimension", [10, 50])
@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_ten_and_fifty_dimensions_have_the_exact_moments(dimension, scale):
    values = scale * spectrum(dimension)
    moments = second_moments(values.max() - values)
    assert moments.sum() == pytest.approx(1, abs=1e-6)
    draws = bingham_coordinates(values, 30_000, seeded(73))
    assert largest_z(draws, moments) < LARGEST_Z


@pytest.mark.expensive
@pytest.mark.parametrize("dimension", [4, 10, 30])
def test_the_rule_that_divides_is_rejected_by_the_same_moments(dimension):
    values = 0.1 * spectrum(dimension)
    draws = wrong_coordinates(values, 30_000, seeded(74))
    assert len(draws) > 100
    assert largest_z(draws, second_moments(values.max() - values)) > 2 * LARGEST_Z


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e15, 1e299])
def test_huge_concentrations_have_the_normal_limit(scale):
    draws = bingham_coordinates(np.array([scale, 0, 0, 0, 0]), 20_000, seeded(75))
    assert np.isfinite(draws).all()
    # 2 scale |x_2..5|² is chi-square on 4 degrees of freedom, to a relative 1e-5.
    # Kolmogorov-Smirnov, false-alarm rate 1e-7.
    losses = 2 * scale * (draws[:, 1:] ** 2).sum(1)
    assert stats.kstest(losses, stats.chi2(4).cdf).pvalue > 1e-7


@pytest.mark.parametrize("dimension", [1, 2, 3, 40])
@pytest.mark.parametrize("value", [0.0, -7.3, 1e12, -1e300])
def test_equal_eigenvalues_give_the_uniform_law(dimension, value):
    draws = bingham_coordinates(np.full(dimension, value), 20_000, seeded(76))
    # Kolmogorov-Smirnov on x_1², Beta(1/2, (d - 1)/2), false-alarm rate 1e-7.
    if dimension > 1:
        law = stats.beta(0.5, (dimension - 1) / 2)
        assert stats.kstest(draws[:, 0] ** 2, law.cdf).pvalue > 1e-7
    # z-test of the sign at 6 standard errors, false-alarm rate 2e-9.
    assert abs(np.sign(draws[:, 0]).mean()) < 6 / 20_000**0.5


def test_one_dimension_is_a_sign():
    assert abs(bingham_vector(np.array([[-3.0]]), secure())) == [1.0]


def test_a_multiple_of_the_identity_changes_no_draw():
    values = np.array([8.0, 3.0, -1.0, -2.0])
    plain = bingham_coordinates(values, 100, seeded(77))
    assert (plain == bingham_coordinates(values - 1024, 100, seeded(77))).all()


@pytest.mark.parametrize("dimension", [2, 3, 10, 116, 784])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e12])
def test_lengths_are_one_and_the_envelope_lies_in_its_bounds(dimension, scale):
    deficits = scale * np.linspace(0, 1, dimension)
    assert 1 <= envelope_spread(deficits) <= dimension * (1 + 1e-12)
    draws = bingham_coordinates(-deficits, 20, seeded(78))
    assert np.linalg.norm(draws, axis=1) == pytest.approx(np.ones(20), abs=1e-14)


def test_the_matrix_and_its_eigenvectors_give_one_law():
    rotation = special_rotation(4)
    matrix = rotation @ np.diag([3.0, 2.0, 1.0, -6.0]) @ rotation.T
    values, vectors = np.linalg.eigh(matrix)
    draws = bingham_vector(matrix, seeded(79))
    assert (draws == bingham_from_eigen(values, vectors, seeded(79))).all()
    assert draws.shape == (4,)


def test_few_eigenvectors_give_a_draw_in_their_span():
    vectors = special_rotation(6)[:, :3]
    draws = bingham_from_eigen(np.array([2.0, 0.0, -2.0]), vectors, seeded(80))
    assert np.linalg.norm(draws) == pytest.approx(1)
    assert vectors @ (vectors.T @ draws) == pytest.approx(draws)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 0), (2, 2, 2)])
def test_a_concentration_is_a_square_matrix(shape):
    with pytest.raises(ArgumentError, match="expected a square matrix"):
        bingham_vector(np.zeros(shape), seeded(1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_concentration_is_finite(value):
    with pytest.raises(ArgumentError, match="not a finite number"):
        bingham_vector(np.diag([value, 1.0]), seeded(1))
    with pytest.raises(ArgumentError, match="from -1e300 to 1e300"):
        bingham_from_eigen(np.array([value, 1.0]), np.eye(2), seeded(1))
