"""Each site releases the root of the leading part of its noisy second moment.

Theorem
    The root is made from a release of the site's own moments with the noise
    that one site needs, so it is post-processing of it. Rows of different
    sites are disjoint and neighbours differ in one site: the joint release has
    the guarantee of one site's.
Sensitivity
    That of ``gauss``. Published examples of the protocol divide by ``N_s`` the
    change of a row more or fewer; where a row is replaced it is √2 times that.
Noise
    Of unknown distribution: the sum of the leading parts is not linear in the noise.
Source
    Imtiaz and Sarwate (2018), "Differentially private distributed principal
    component analysis", ICASSP. There all sites count alike, about 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmodels.errors import ArgumentError, FrameError, quoted
from dpmodels.external_files import LONGEST
from dpmodels.mechanisms import Gauss
from dpmodels.mechanisms.protocol import Plan
from dpmodels.noise import Entropy
from dpmodels.released import AnyRelease, MomentNoise, MomentsRelease
from dpmodels.sites import packing
from dpmodels.sites.key_file import Secrets
from dpmodels.sites.protocol import Joint, MessageProtocol, Names, Parts, Statistics, Trust
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats


class Root(NamedTuple):
    """What a site sends: noisy number of complete rows, their sum, and the root.

    ``root @ root.T`` is the leading part of the noisy second moment, about the site's own noisy
    mean where that was released.
    """

    complete: float
    total: Floats | None
    root: Floats  # Shape (columns, R)


@dataclass(frozen=True)
class DPdisPCA(MessageProtocol):
    """The sum of the sites' leading parts.

    Parameters
    ----------
    R : int, optional
        Columns of the root that a site sends, from the number of components
        to the number of columns; by default the number of components.
    weights : {"rows", "sites"}
        Whether a site counts in proportion to its rows, or as much as any: of
        moments alone, and where numbers of rows are public.

    Examples
    --------
    >>> DPdisPCA(R=10).trust.name
    'dpdispca'
    """

    R: int | None = None
    weights: str = "rows"

    trust: ClassVar[Trust] = Trust(
        name="dpdispca",
        sees="the root of the leading part of each site's noisy second moment",
        holds="any coalition without the site itself",
        source="Imtiaz and Sarwate (2018)",
    )
    passes_noise: ClassVar[bool] = True
    lawful: ClassVar[bool] = False

    def check(self, joint: Joint) -> None:
        """Refuse all but the Gaussian mechanism for components, and an R out of range."""
        plan = joint.plan
        packing.require_gaussian(joint.strategy, plan, self.trust.name)
        if not isinstance(joint.strategy, Gauss):
            raise ArgumentError(
                "protocol='dpdispca' keeps the leading directions of a second moment, which is "
                "for dp.dp_pca and dp.dp_cov: write protocol='full' or 'secure_sum'"
            )
        packing.checked_weights(self.weights, plan, self.trust.name)
        low, high = plan.facts.components or plan.facts.columns, plan.facts.columns
        is_integer = isinstance(self.R, int) and not isinstance(self.R, bool)
        if self.R is not None and not (is_integer and low <= self.R <= high):
            raise ArgumentError(
                f"R={quoted(self.R)} of protocol 'dpdispca': expected a whole number from {low}, "
                f"the components kept, to {high}, the columns"
            )

    def release(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> AnyRelease:
        """Release each site's leading part, and add."""
        releases = [_released(joint, statistic, entropy) for statistic in statistics]
        roots = [self.root(release, joint.plan) for release in releases]
        return self.join(roots, releases, joint.names)

    def root(self, release: MomentsRelease, plan: Plan) -> Root:
        """Return what a site sends of its own release.

        Eigenvalues below 0 are noise: their columns of the root are zero.
        """
        n_columns = self._kept(plan)
        second_moment = release.second - _of_mean(release.count, release.total)
        values, vectors = np.linalg.eigh(second_moment)
        leading = vectors[:, ::-1][:, :n_columns] * np.sqrt(
            np.maximum(values[::-1][:n_columns], 0.0)
        )
        return Root(release.count, release.total, leading)

    def view(self, joint: Joint, statistics: Statistics, entropy: Entropy) -> Floats:
        """Return the number of rows and the leading part that the first site sends."""
        sent = self.root(_released(joint, statistics[0], entropy), joint.plan)
        return np.append(sent.root @ sent.root.T, sent.complete)

    def part(
        self, joint: Joint, statistic: Statistic, secrets: Secrets | None, entropy: Entropy
    ) -> Floats:
        """Return the site's root, after its number of rows and their sum."""
        root = self.root(_released(joint, statistic, entropy), joint.plan)
        total = np.zeros(0) if root.total is None else root.total
        return np.concatenate([[root.complete], total, root.root.ravel()])

    def shape(self, plan: Plan) -> tuple[str, tuple[int, ...]]:
        """Return that of these numbers."""
        columns = plan.facts.columns
        return "floats", (1 + columns * plan.facts.centred + columns * self._kept(plan),)

    def whole(self, joint: Joint, parts: Parts, rows: Sequence[int]) -> AnyRelease:
        """Add what the sites sent."""
        strategy, plan, names = joint
        columns, silent = plan.facts.columns, np.zeros(len(packing.scales(plan)), dtype=object)
        roots, terms = [], []
        for name, numbers, count in zip(names, parts, rows, strict=True):
            if not (np.abs(numbers) <= LONGEST).all():
                raise FrameError(f"site {name!r} sent numbers that are not finite")
            first, last = numbers[1 : 1 + columns * plan.facts.centred], self._kept(plan) * columns
            total = first if plan.facts.centred else None
            roots.append(Root(float(numbers[0]), total, numbers[-last:].reshape(columns, -1)))
            terms.append(packing.unpack(strategy, silent, plan, count, 1.0))
        return self.join(roots, terms, names)

    def _kept(self, plan: Plan) -> int:
        return self.R or plan.facts.components or plan.facts.columns

    def join(self, roots: Any, terms: Any, names: Names) -> AnyRelease:
        """Add ``P_s P_sᵀ``, and what was left out for the means, at no further cost."""
        seconds = [root.root @ root.root.T + _of_mean(root.complete, root.total) for root in roots]
        sent = [
            replace(release, count=root.complete, total=root.total, second=second)
            for root, release, second in zip(roots, terms, seconds, strict=True)
        ]
        rows = [0 if release.rows is None else release.rows for release in sent]
        total = packing.weighted(sent, packing.site_weights(self.weights, rows))
        assert isinstance(total, MomentsRelease)
        noise = MomentNoise(total.noise.count, total.noise.mean, math.nan, math.nan)
        centred = 0 if total.total is None else total.total.size
        numbers = 1 + centred + roots[0].root.size
        return packing.shared_by(replace(total, noise=noise), self.trust, names, numbers)


def _released(joint: Joint, statistic: Statistic, entropy: Entropy) -> MomentsRelease:
    release = joint.strategy.release(statistic, joint.plan, entropy)
    assert isinstance(release, MomentsRelease)
    return release


def _of_mean(count: float, total: Floats | None) -> Floats | float:
    """Return what the mean of rows adds to their second moment about 0.

    Rows are of length 1 at most: a sum longer than their number is noise.
    """
    if total is None:
        return 0.0
    contribution: Floats = np.outer(total, total) / max(count, float(np.linalg.norm(total)), 1.0)
    return contribution
