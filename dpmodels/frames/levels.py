"""Declared levels, ready to be looked up by text or by number."""

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.cell import number, plain
from dpmodels.typing import Floats


class LevelCodes(dict[str | float | None, int]):
    """The code of a cell: the index of its level, or -1.

    A dictionary from plain cells (text, numbers, None) that works out a cell it has
    not met and remembers it. Numbers that are equal are one key: 1, 1.0 and True.

    Parameters
    ----------
    levels : tuple of str, number or bool
        The declared levels; the first of equal levels counts.

    Examples
    --------
    >>> codes = LevelCodes((1, "F"))
    >>> codes["F"], codes["1.0"], codes[True], codes["f"], codes[None]
    (1, 0, 0, -1, -1)
    """

    def __init__(self, levels: tuple[Hashable, ...]) -> None:
        declared = [(plain(level), index) for index, level in enumerate(levels)]
        texts = [(level, index) for level, index in declared if isinstance(level, str)]
        declared_numbers = [(level, k) for level, k in declared if isinstance(level, float)]
        # "1" before "01": the level that prints as the number before others that spell it.
        printed_first = sorted(texts, key=lambda pair: not _is_printed(pair[0]))
        spelled = [(number(text), index) for text, index in printed_first]
        self._numbers = _first(declared_numbers + spelled)
        super().__init__()
        for text, index in texts:
            self.setdefault(text, index)

    def __missing__(self, cell: str | float | None) -> int:
        """Work out, and remember, a cell that is no declared text."""
        value = plain(cell)
        value = number(value) if isinstance(value, str) else value
        code = self[cell] = self._numbers.get(value, -1)
        return code

    @property
    def any_number(self) -> bool:
        """Whether a number can be one of the levels."""
        return bool(self._numbers)

    def of_numbers(self, values: Floats) -> NDArray[np.intp]:
        """Look up an array of numbers, shape (n,)."""
        if not self._numbers:
            return np.full(len(values), -1, dtype=np.intp)
        keys = np.array(sorted(self._numbers))
        codes = np.array([self._numbers[key] for key in keys.tolist()], dtype=np.intp)
        place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[place] == values, codes[place], -1)


def _first(pairs: list[tuple[float, int]]) -> dict[float, int]:
    """Keep the first index of equal numbers; NaN is nobody's number."""
    table: dict[float, int] = {}
    for value, index in pairs:
        if value == value:
            table.setdefault(value, index)
    return table


def _is_printed(text: str) -> bool:
    """Whether Python prints some number, or a logical value, as this text."""
    value = number(text)
    return text in {repr(value), f"{value:.0f}", "True", "False"}
