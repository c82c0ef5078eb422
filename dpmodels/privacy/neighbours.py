"""Who is a neighbour of whom: the relation a guarantee protects.

.. [1] Dwork, C. and Roth, A. (2014). "The Algorithmic Foundations of Differential Privacy."
   Foundations and Trends in Theoretical Computer Science 9(3-4), 211-407. Section 2.3.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dpmodels.errors import ArgumentError, said

AdjacencyName = Literal["replace", "add-remove"]

_DESCRIPTIONS: Final = {
    "replace": "replace one row, n public",
    "add-remove": "add or remove one row",
}


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A relation between neighbouring tables.

    Parameters
    ----------
    name : {"replace", "add-remove"}
        ``"replace"``: one row is changed to any other, the number of rows is public.
        ``"add-remove"``: one row more or fewer, the number of rows is private and has to be bought.

    Raises
    ------
    ArgumentError
        If the name is neither of the two.

    Examples
    --------
    >>> Adjacency("replace").describe()
    'replace one row, n public'
    >>> Adjacency("add-remove").n_public
    False
    """

    name: AdjacencyName

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in _DESCRIPTIONS:
            raise ArgumentError(
                f"adjacency={said(self.name)} is not known: write adjacency='replace' (one row is "
                "changed, n is public) or adjacency='add-remove' (one row more or fewer, n is "
                "private)."
            )

    @property
    def n_public(self) -> bool:
        """Whether the number of rows is a public fact."""
        return self.name == "replace"

    def describe(self) -> str:
        """Return the relation in a few words, as reports print it."""
        return _DESCRIPTIONS[self.name]


def adjacency(name: AdjacencyName | Adjacency) -> Adjacency:
    """Return the neighbouring relation a verb's word `adjacency` stands for.

    >>> adjacency("replace")
    Adjacency(name='replace')
    """
    return name if isinstance(name, Adjacency) else Adjacency(name)
