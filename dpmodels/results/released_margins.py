"""Released components of margins, and the tables that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.inference.margins import MarginNoise
from dpmodels.levels import Level
from dpmodels.postprocess.protocol import whole
from dpmodels.postprocess.residuals import (
    MOST_CELLS,
    MOST_ROWS,
    Term,
    agreeing,
    components,
    largest,
    rebuilt,
    split,
)
from dpmodels.released import MarginsRelease
from dpmodels.results.base import STAMP
from dpmodels.results.call import DescribedCall
from dpmodels.typing import Floats, Integers


@dataclass(frozen=True, eq=False)
class ReleasedMargins:
    """Margins of one release, by the positions of their variables in `factors`."""

    call: DescribedCall
    release: MarginsRelease

    @property
    def stamp(self) -> str | None:
        """The warning on tables and pictures of a simulation."""
        return STAMP if self.release.simulated else None

    @property
    def effect(self) -> int:
        """The design effect: rows that may be one person's."""
        return self.release.adjacency.design_effect

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """All variables, in order of first mention."""
        return tuple(self.levels)

    @cached_property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """Declared levels of each variable."""
        return {
            factor: levels
            for table in self.call.tables
            for factor, levels in zip(table.factors, table.levels, strict=True)
        }

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The requested margins, as positions of their variables in `factors`."""
        positions = {factor: place for place, factor in enumerate(self.factors)}
        return tuple(
            tuple(positions[factor] for factor in table.factors) for table in self.call.tables
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each variable, with one more for what is missing or unlisted."""
        return tuple(len(levels) + 1 for levels in self.levels.values())

    @cached_property
    def noise(self) -> MarginNoise:
        """The distribution of the noise in all margins."""
        has_total, release = self.release.rows is not None, self.release
        noised = components(self.terms)[int(has_total) :]
        if release.law == "laplace":
            noised = largest(self.terms)
        sds = dict(zip(noised, release.noise_sds, strict=True))
        places = release.adjacency.places if release.adjacency.counts_persons else 1
        return MarginNoise(release.law, self.sizes, sds, has_total, 1 / places)

    @cached_property
    def _parts(self) -> Mapping[Term, Floats]:
        return split(self.release.values, components(self.terms), self.sizes)

    def inside(self, term: Term) -> bool:
        """Return whether variables occur together in a requested margin."""
        return any(set(term) <= set(margin) for margin in self.terms)

    def unbiased(self, term: Term) -> Floats:
        """Return a margin's unbiased counts, the level of what is missing the last."""
        return rebuilt(term, self._parts, self.sizes)

    @cached_property
    def _whole_tables(self) -> dict[Term, Integers]:
        """Cache of whole tables."""
        return {}

    def whole(self, term: Term) -> Integers:
        """Return a margin's whole counts: not negative, and consistent where possible."""
        if term not in self._whole_tables:
            self._whole_tables[term] = self._whole(term)
        return self._whole_tables[term]

    def _whole(self, term: Term) -> Integers:
        unbiased = self.unbiased(term)
        total = max(float(np.rint(self._parts[()])), 0.0)
        if len(term) < 2 or unbiased.size > MOST_CELLS or total > MOST_ROWS:
            return whole(unbiased.ravel(), total).reshape(unbiased.shape)
        lines, columns = self.whole(term[:-1]), self.whole(term[-1:])
        table = unbiased.reshape(-1, unbiased.shape[-1])
        return agreeing(table, lines.ravel(), columns).reshape(unbiased.shape)
