"""The header of a printed report: label and value pairs in two columns."""

from collections.abc import Sequence
from itertools import zip_longest

from dpmodels.labels import plain
from dpmodels.report.characters import pad, width, wrap
from dpmodels.report.layout import LIMIT

_VALUE = 32  # a value longer than this is shortened or wrapped
_NARROW_VALUE = 22
_LABEL = 24
_BETWEEN = "   "

_Lines = tuple[str, ...]


def fact_lines(facts: Sequence[tuple[str, str]]) -> list[str]:
    r"""Lines of the header, filled row by row from left to right.

    Formulas longer than 32 characters are shortened and other long values
    wrapped; where a line would still have more than 100, at 22 characters.

    Examples
    --------
    >>> print(*fact_lines([("Formula", "~ a + b"), ("Guarantee", "eps = 1")]), sep="\n")
    Formula:  ~ a + b   Guarantee: eps = 1
    """
    lines = _two_columns(facts, _VALUE)
    wide = max(map(width, lines), default=0) > LIMIT
    return _two_columns(facts, _NARROW_VALUE) if wide else lines


def shorten(formula: str, most: int) -> str:
    """Leave out middle terms of a formula, to at most ``most`` characters.

    The first and the last term always stay, so the result can have more.

    Examples
    --------
    >>> shorten("~ mdvis + lncoins + idp + lpi + fmde + hlthg + hlthf + hlthp", 32)
    '~ mdvis + lncoins + ... + hlthp'
    """
    terms = _terms(formula)
    if width(formula) <= most or len(terms) < 3:
        return formula
    best = " + ".join([terms[0], "...", terms[-1]])
    head, tail = 1, 1
    for turn in range(len(terms) - 3):
        grown = (head + 1, tail) if turn % 2 == 0 else (head, tail + 1)
        text = " + ".join([*terms[: grown[0]], "...", *terms[-grown[1] :]])
        if width(text) > most:
            break
        best, (head, tail) = text, grown
    return best if width(best) < width(formula) else formula


def _terms(formula: str) -> list[str]:
    """Split a formula at the plus signs that stand outside brackets."""
    terms, depth = [""], 0
    for character in formula:
        depth += (character in "([{") - (character in ")]}")
        if character == "+" and depth == 0:
            terms.append("")
        else:
            terms[-1] += character
    return [term.strip() for term in terms]


def _block(facts: Sequence[tuple[str, str]], most: int, gap: int) -> list[_Lines]:
    """One column of the header: each pair as lines of equal width."""
    labels = [wrap(label + ":", _LABEL, indent=2) for label, _ in facts]
    values = [_value_lines(plain(value), most) for _, value in facts]
    label_width = max((width(line) for lines in labels for line in lines), default=0) + gap
    value_width = max((width(line) for lines in values for line in lines), default=0)
    return [
        tuple(
            pad(label, label_width, "<") + pad(value, value_width, "<")
            for label, value in zip_longest(*pair, fillvalue="")
        )
        for pair in zip(labels, values, strict=True)
    ]


def _value_lines(value: str, most: int) -> _Lines:
    return wrap(shorten(value, most) if "~" in value else value, most)


def _two_columns(facts: Sequence[tuple[str, str]], most: int) -> list[str]:
    left, right = _block(facts[0::2], most, gap=2), _block(facts[1::2], most, gap=1)
    blank = " " * max((width(block[0]) for block in left), default=0)
    return [
        (_BETWEEN.join([a or blank, b]) if b else a).rstrip()
        for pair in zip_longest(left, right, fillvalue=())
        for a, b in zip_longest(*pair, fillvalue="")
    ]
