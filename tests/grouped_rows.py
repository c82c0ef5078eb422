"""A table whose rows come in groups, as a database gives them."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dpmodels.frames import open_rows
from dpmodels.frames.engine import Groups


class GroupedTable:
    """The rows of a table; groups of equal cells come in any order, some of them repeatedly."""

    rereadable = True

    def __init__(self, data: object, parts: int = 6) -> None:
        self._rows = open_rows(data)
        self._parts = parts
        self.passes = Counter[str]()

    @property
    def names(self) -> tuple[str, ...]:
        return self._rows.names

    @property
    def nrows(self) -> int | None:
        return self._rows.nrows

    def kind(self, name: str):
        return self._rows.kind(name)

    def chunks(self, columns: tuple[str, ...], block_rows: int):
        self.passes["rows"] += 1
        return self._rows.chunks(columns, block_rows)

    def repeats(self, name: str) -> bool:
        return True

    def groups(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
        self.passes["groups"] += 1
        (chunk,) = self._rows.chunks(columns, 10**9)
        cells = [chunk[name].tolist() for name in columns]
        first: dict[str, int] = {}
        codes = [first.setdefault(repr(row), at) for at, row in enumerate(zip(*cells, strict=True))]
        rows, counts = np.unique(codes, return_counts=True)
        order = np.random.default_rng(3).permutation(len(rows))
        # Half of the counts first, then what is left of them.
        number = max(1, self._parts // 2)
        firsts = [
            (part, counts[part] // min(2, self._parts)) for part in np.array_split(order, number)
        ]
        seconds = [(part, counts[part] - often) for part, often in firsts]
        for part, often in [*firsts, *seconds][: self._parts]:
            values_by_name = {name: chunk[name][rows[part]] for name in columns}
            yield Groups(values_by_name, often.astype(np.int64))
