"""A cell that is a bar: characters where nothing better can be drawn."""

from __future__ import annotations

from typing import Final

# A choice: characters of the longest bar.
LONGEST: Final = 20


class Bar(str):
    """A share of the longest bar, from 0 to 1, as text of one width.

    >>> Bar(0.25), Bar(0.25).share
    ('#####...............', 0.25)
    """

    __slots__ = ("share",)
    share: float

    def __new__(cls, share: float) -> Bar:
        """Return the text of a share."""
        own = super().__new__(cls, ("#" * round(LONGEST * share)).ljust(LONGEST, "."))
        own.share = share
        return own
