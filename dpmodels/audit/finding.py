"""Something an audit came across besides the numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A remark: not a verdict by itself, since only rates of events can be one.

    Attributes
    ----------
    kind : str
        ``"raised"``, ``"not finite"``, ``"shape"``, ``"constant"``,
        ``"repeats"``, ``"outcomes"``, ``"few runs"`` or ``"no test"``.
    words : str
        What was seen, in a sentence.
    """

    kind: str
    words: str
