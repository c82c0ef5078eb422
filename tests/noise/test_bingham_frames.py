import numpy as np
import pytest
from scipy import stats

from dpmodels.errors import ArgumentError
from dpmodels.noise import secure, seeded
from dpmodels.noise.bingham_frames import (
    SWEEPS,
    Convergence,
    bingham_coordinates,
    bingham_vector,
    matrix_bingham,
    rounds,
    sequential_bingham,
    sweep,
    uniform_frames,
)

# Largest of at most 30 two-sample z-statistics: false-alarm rate 6e-8 under the normal law.
LARGEST_Z = 6.0
FOUR = np.array([3.0, 1.0, 0.0, -1.5])


class Counted:
    """An entropy that counts the words it gives."""

    def __init__(self, entropy):
        self._entropy, self.count = entropy, 0

    def words(self, count):
        self.count += count
        return self._entropy.words(count)


def by_rejection(values, k, tries, seed):
    """Frames (d, n, k) from the law by brute force: uniform frames kept with their density."""
    frames = uniform_frames(values.size, tries, k, seeded(seed))
    exponents = np.einsum("i,ink,ink->n", values, frames, frames)
    largest = np.sort(values)[-k:].sum()
    uniform = np.random.default_rng(seed).random(tries)
    return frames[:, np.log(uniform) < exponents - largest]


def run(frames, values, sweeps, seed):
    entropy, schedule = seeded(seed), rounds(values.size)
    for _ in range(sweeps):
        sweep(frames, values, schedule, entropy)
    return frames


def features(frames):
    """Functions of the projectors: their entries, squares and products of neighbours."""
    projectors = np.einsum("ink,jnk->ijn", frames, frames)
    upper = projectors[np.triu_indices(len(projectors))]
    return np.vstack([upper, upper**2, upper * np.roll(upper, 1, axis=0)])


def largest_z(first, second):
    errors = np.sqrt(first.var(1) / first.shape[1] + second.var(1) / second.shape[1])
    return (abs(first.mean(1) - second.mean(1)) / errors).max()


@pytest.fixture(scope="module")
def truth():
    return by_rejection(FOUR, 2, 400_000, 81)


@pytest.mark.parametrize("dimension", [2, 3, 4, 7, 12])
def test_the_rounds_hold_every_pair_once_and_no_coordinate_twice(dimension):
    schedule = rounds(dimension)
    pairs = np.sort(schedule, axis=1).transpose(0, 2, 1).reshape(-1, 2)
    assert len({tuple(pair) for pair in pairs}) == len(pairs) == dimension * (dimension - 1) // 2
    for played in schedule:
        assert len(set(played.ravel())) == played.size


@pytest.mark.product
def test_the_chain_reaches_the_law_of_brute_force_from_a_uniform_start(truth):
    assert truth.shape[1] > 10_000
    result = run(uniform_frames(4, 20_000, 2, seeded(82)), FOUR, 25, 83)
    assert largest_z(features(result), features(truth)) < LARGEST_Z


@pytest.mark.product
def test_the_chain_reaches_the_law_from_the_worst_start(truth):
    start = np.tile(np.eye(4)[:, None, 2:], (1, 20_000, 1))
    assert largest_z(features(run(start, FOUR, 25, 84)), features(truth)) < LARGEST_Z


@pytest.mark.product
def test_one_sweep_keeps_the_law_and_a_sweep_for_another_law_does_not(truth):
    start = by_rejection(FOUR, 2, 400_000, 85)
    expected = features(truth)
    assert largest_z(features(run(start.copy(), FOUR, 1, 86)), expected) < LARGEST_Z
    assert largest_z(features(run(start.copy(), 1.2 * FOUR, 1, 86)), expected) > LARGEST_Z


@pytest.mark.product
def test_the_columns_of_the_chain_are_alike(truth):
    result = run(uniform_frames(4, 20_000, 2, seeded(87)), FOUR, 25, 88)
    columns = np.einsum("i,ink->kn", FOUR, result**2)
    truths = np.einsum("i,ink->kn", FOUR, truth**2)
    assert largest_z(columns[:1], columns[1:]) < LARGEST_Z
    # How far apart they are tells whether the basis of the subspace is a uniform one.
    distance, truly = columns[0] - columns[1], truths[0] - truths[1]
    assert largest_z(distance[None] ** 2, truly[None] ** 2) < LARGEST_Z


@pytest.mark.product
@pytest.mark.parametrize("values", [[5.0, 1.0, -1.0], [40.0, 40.0, 0.0]])
def test_the_normal_of_a_plane_is_a_bingham_vector_of_the_opposite_sign(values):
    values = np.array(values)
    normals = bingham_coordinates(-values, 20_000, seeded(89)).T[:, :, None]
    identity = np.eye(3)[:, :, None]
    expected = identity - np.einsum("ink,jnk->ijn", normals, normals)
    result = run(uniform_frames(3, 20_000, 2, seeded(90)), values, 25, 91)
    projectors = np.einsum("ink,jnk->ijn", result, result)
    upper = np.triu_indices(3)
    assert largest_z(projectors[upper], expected[upper]) < LARGEST_Z
    entropy = seeded(92)
    frames = np.stack([matrix_bingham(np.diag(values), 2, entropy)[0] for _ in range(600)], 1)
    projectors = np.einsum("ink,jnk->ijn", frames, frames)
    assert largest_z(projectors[upper], expected[upper]) < LARGEST_Z
    columns = np.einsum("i,ink->kn", values, frames**2)
    assert largest_z(columns[:1], columns[1:]) < LARGEST_Z


@pytest.mark.product
@pytest.mark.parametrize("scale", [1e6, 1e12])
def test_the_public_number_of_sweeps_reaches_a_far_law(scale):
    values = np.where(np.arange(8) < 3, scale, 0.0)
    frames = run(uniform_frames(8, 1000, 3, seeded(93)), values, SWEEPS, 94)
    # The energy outside the leading three is Gamma(15/2) to a relative 1e-5: 15 normals.
    # Kolmogorov-Smirnov, false-alarm rate 1e-7.
    outside = scale * (frames[3:] ** 2).sum((0, 2))
    assert stats.kstest(outside, stats.gamma(7.5).cdf).pvalue > 1e-7


@pytest.mark.product
def test_far_apart_energies_move_independently():
    values = 1e8 * 0.1 ** np.arange(6.0)
    frames = run(uniform_frames(6, 3000, 2, seeded(95)), values, SWEEPS, 96)
    # With a leading pair fixed, the angles between it and the rest are normal with precision
    # twice the gap, so each gap times its squared entry of the projector is Gamma(1/2).
    projectors = np.einsum("ink,jnk->ijn", frames, frames)
    for i in (0, 1):
        for j in (2, 3, 4, 5):
            scaled = (values[i] - values[j]) * projectors[i, j] ** 2
            # Kolmogorov-Smirnov, false-alarm rate 1e-7 each.
            assert stats.kstest(scaled, stats.gamma(0.5).cdf).pvalue > 1e-7


def test_a_frame_leads_where_the_matrix_does():
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((9, 9)))[0]
    matrix = turn @ np.diag([9e6, 8e6, 7e6, 0, 0, 0, -1e6, -1e6, -1e9]) @ turn.T
    for frame in (matrix_bingham(matrix, 3, secure())[0], sequential_bingham(matrix, 3, secure())):
        assert frame.T @ frame == pytest.approx(np.eye(3), abs=1e-13)
        # The energy left out is Gamma(9), below 100 but for 1e-25; a column costs at most that.
        assert np.linalg.norm(turn[:, 3:].T @ frame) < 0.005


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_words_and_statement_are_public(k):
    recorded = set()
    for scale in (0.0, 1.0, 1e9):
        entropy = Counted(seeded(97))
        _, convergence = matrix_bingham(scale * np.diag(np.arange(5.0) ** 2), k, entropy)
        recorded.add((convergence, str(convergence), entropy.count if k == 2 else None))
    assert len(recorded) == 1


@pytest.mark.parametrize(("k", "exact"), [(2, False), (1, True), (5, True), (6, True), (4, False)])
def test_the_statement_says_what_is_exact(k, exact):
    _, convergence = matrix_bingham(np.eye(6), k, seeded(1))
    assert convergence.exact is exact
    assert str(convergence).startswith("exact draw" if exact else "in the limit of the chain")
    assert convergence == (Convergence(0, 0) if exact else Convergence(SWEEPS, SWEEPS * 15))


def test_one_column_is_the_exact_vector():
    matrix = np.diag([3.0, 1.0, 0.0])
    vector = bingham_vector(matrix, seeded(98))
    assert (matrix_bingham(matrix, 1, seeded(98))[0][:, 0] == vector).all()
    assert sequential_bingham(matrix, 1, seeded(98))[:, 0] == pytest.approx(vector, abs=1e-15)


@pytest.mark.parametrize("draw", [lambda *a: matrix_bingham(*a)[0], sequential_bingham])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_as_many_columns_as_rows(draw, dimension):
    frame = draw(np.diag(np.arange(float(dimension))), dimension, seeded(99))
    assert frame.T @ frame == pytest.approx(np.eye(dimension), abs=1e-13)


def test_a_full_frame_is_uniform():
    frames = uniform_frames(3, 20_000, 3, seeded(100))
    # An entry of a uniform frame in three dimensions is uniform on [-1, 1], and so is an entry of
    # its product with any fixed frame. Kolmogorov-Smirnov tests, false-alarm rate 1e-7 each.
    turned = np.einsum("ink,kj->inj", frames, np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2)[0])
    for entries in (*frames.transpose(0, 2, 1).reshape(9, -1), *turned[0].T):
        assert stats.kstest(entries, stats.uniform(-1, 2).cdf).pvalue > 1e-7
    spread = np.diag([1e9, 0.0, 0.0])
    exact, flat = matrix_bingham(spread, 3, seeded(100)), matrix_bingham(np.eye(3), 3, seeded(100))
    assert (exact[0] == flat[0]).all()


@pytest.mark.product
def test_the_sequential_law_by_direct_simulation():
    values = np.array([2.5, 1.0, -1.0])
    generator = np.random.default_rng(101)

    def unit(count):
        cloud = generator.standard_normal((count, 3))
        return cloud / np.linalg.norm(cloud, axis=1, keepdims=True)

    def kept(candidates):
        return np.log(generator.random(len(candidates))) < candidates**2 @ values - 2.5

    first = unit(200_000)
    first = first[kept(first)]
    second = np.full_like(first, np.nan)
    while (missing := np.isnan(second[:, 0])).any():
        axis, cloud = first[missing], unit(missing.sum())
        cloud -= (axis * cloud).sum(1, keepdims=True) * axis
        cloud /= np.linalg.norm(cloud, axis=1, keepdims=True)
        second[missing] = np.where(kept(cloud)[:, None], cloud, np.nan)
    entropy = seeded(102)
    draws = np.array([sequential_bingham(np.diag(values), 2, entropy) for _ in range(1000)])

    def moments(x, y):
        return np.vstack(
            [(x**2).T, (y**2).T, (x * y).T[:2], (x**2 * y**2).T, (x[:, 0] * y[:, 1]) ** 2]
        )

    assert largest_z(moments(*draws.transpose(2, 0, 1)), moments(first, second)) < LARGEST_Z


@pytest.mark.parametrize("draw", [matrix_bingham, sequential_bingham])
def test_arguments_out_of_range_are_refused(draw):
    for k in (0, 4, -1):
        with pytest.raises(ArgumentError, match="number of columns from 1 to 3"):
            draw(np.eye(3), k, seeded(1))
    with pytest.raises(ArgumentError, match="k is of type float"):
        draw(np.eye(3), 2.0, seeded(1))
    with pytest.raises(ArgumentError, match="square matrix"):
        draw(np.ones((3, 2)), 1, seeded(1))
