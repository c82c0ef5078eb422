"""Rows of results side by side: merged in the order seen, chosen by name, and put in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.results.call import INTERCEPT

TIMES: Final = " × "
LEVEL: Final = re.compile(r"(?P<factor>.+?)\[(?:T\.)?(?P<level>.*)\]", re.DOTALL)


def factors(term: str) -> tuple[str, ...]:
    """Split a coefficient's name at the colons outside brackets and quotes.

    >>> factors("age:sex[F]"), factors("when[10:30]")
    (('age', 'sex[F]'), ('when[10:30]',))
    """
    parts, depth, quoted = [""], 0, ""
    for character in term:
        if quoted or character in "\"'":
            quoted = "" if character == quoted else quoted or character
        depth += 0 if quoted else (character in "([{") - (character in ")]}")
        if character == ":" and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(parts)


def merged(columns: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return names in the order first seen, an intercept first, each by what it is a product of.

    Products in another order are the same; the value holds all the ways a name is written.
    """
    written: dict[tuple[str, ...], dict[str, None]] = {}
    for names in columns:
        for name in names:
            written.setdefault(tuple(sorted(factors(name))), {})[name] = None
    found = {next(iter(own)): tuple(own) for own in written.values()}
    first = {INTERCEPT: found.pop(INTERCEPT)} if INTERCEPT in found else {}
    return {**first, **found}


def chosen(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> list[str]:
    """Return the names that are kept, in the order of `keep`, less those dropped.

    ArgumentError where a pattern is no regular expression or meets no name.
    """
    kept = list(names)
    if keep:
        kept = list(dict.fromkeys(name for own in keep for name in _met("keep", own, names)))
    gone = {name for own in drop for name in _met("drop", own, names)}
    left = [name for name in kept if name not in gone]
    if not left:
        raise ArgumentError("keep= and drop= leave no row: keep more, or drop less")
    return left


def _met(word: str, pattern: str, names: Sequence[str]) -> list[str]:
    """Return the one name that is the pattern, or else those it is found in."""
    if pattern in names:
        return [pattern]
    try:
        found = [name for name in names if re.search(pattern, name)]
    except re.error as error:
        raise ArgumentError(
            f"{word}={said(pattern)} is no row and no regular expression ({error}); write one of "
            f"{shorten(', '.join(names), 200)}"
        ) from None
    if not found:
        raise ArgumentError(
            f"{word}={said(pattern)} meets no row; the rows are {shorten(', '.join(names), 200)}"
        )
    return found


def worded(term: str, words: Mapping[str, str]) -> str:
    """Put a name in words: of itself, or of the variables that it is made of.

    >>> told = {"age": "Age", "sex": "Sex"}
    >>> worded("age:sex[F]", told), worded("log(age)", told), worded("agent", told)
    ('Age × Sex: F', 'log(Age)', 'agent')
    """
    return words[term] if term in words else TIMES.join(_word(own, words) for own in factors(term))


def _word(factor: str, words: Mapping[str, str]) -> str:
    level = LEVEL.fullmatch(factor)
    if factor in words or not words:
        return words.get(factor, factor)
    if level and level["factor"] in words:
        return f"{words[level['factor']]}: {level['level']}"
    longest = sorted(map(re.escape, words), key=len, reverse=True)
    known = re.compile(rf"(?<![\w.])(?:{'|'.join(longest)})(?![\w.])")
    return known.sub(lambda own: words[own[0]], factor)
