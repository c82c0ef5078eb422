"""What carries a release over a network: questions to nodes, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Post(Protocol):
    """What carries questions to nodes and brings their answers."""

    def nodes(self) -> Sequence[int]:
        """Return the nodes that are connected now."""
        ...

    def send(self, question: str, asked: Mapping[int, Mapping[str, Any]], seconds: float) -> None:
        """Ask nodes; a question not taken up in that time is void."""
        ...

    def arrived(self) -> Sequence[tuple[int, Mapping[str, Any]]]:
        """Return answers not returned before; ``{"failure": why}`` for a node that failed."""
        ...
