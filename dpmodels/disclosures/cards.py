"""Cards of mechanisms by name, and the sources that their documentation gives."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Final

from dpmodels import mechanisms
from dpmodels.citation import citation
from dpmodels.mechanisms.user_supplied import registered_card
from dpmodels.released import Card
from dpmodels.report.latex import escaped
from dpmodels.version import __version__

_MARKUP: Final = re.compile(r":\w+:(?=`)|`+")
_SOURCE: Final = re.compile(r"^Source\n((?: +.*\n?|\n)+)", re.MULTILINE)


@cache
def _documented() -> dict[Card, str]:
    """Return every mechanism's card, with the file that it is documented in."""
    rooms = vars(mechanisms).items()
    tables = [own for name, own in rooms if name.isupper() and isinstance(own, dict)]
    known = (strategy for table in tables for strategy in table.values())
    return {strategy.card: strategy.__module__ for strategy in known}


def card_named(name: str) -> Card | None:
    """Return the card of a name, registered ones too; None where none has it, or several have."""
    found = [card for card in _documented() if card.name == name]
    return found[0] if len(found) == 1 else registered_card(name)


def source(card: Card) -> str:
    """Return the source as the mechanism's documentation has it, else as its card has."""
    where = _documented().get(card)
    text = None if where is None else sys.modules[where].__doc__
    told = _SOURCE.search(text or "")
    return " ".join(_MARKUP.sub("", told[1]).split()) if told else card.source


def bibtex(cards: tuple[Card, ...]) -> str:
    """Return entries of the package and of what mechanisms come from."""
    entries = [citation("bibtex")]
    entries += [
        f"@misc{{dpmodels-{re.sub('[^a-z0-9]+', '-', card.name)},\n"
        f"  title = {{Source of the mechanism {escaped(card.name)} of dpmodels {__version__}}},\n"
        f"  note  = {{{_quoted(source(card))}}}\n}}"
        for card in cards
    ]
    return "\n\n".join(entries)


def _quoted(text: str) -> str:
    """Escape a text, with the quotation marks of LaTeX about its titles."""
    return re.sub(r"\{\\char34\}(.*?)\{\\char34\}", r"``\1''", escaped(text))
