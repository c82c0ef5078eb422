"""Names on pictures: short, distinct, as many as there is room for."""

from collections.abc import Sequence
from itertools import takewhile

_DOTS = "..."
_HEAD = 4  # first characters kept of names that differ in the middle


def short_names(names: Sequence[str], most: int = 24) -> tuple[str, ...]:
    """Names with the middle of long ones left out, still all distinct.

    Parameters
    ----------
    names : sequence of str
        Distinct names in the order of the picture.
    most : int
        Characters a name may have, at least 16.

    Returns
    -------
    tuple of str
        Names that would look alike show where they differ; if that is not
        enough, they end with their number among the look-alikes.

    Examples
    --------
    >>> short_names(["age", "C(region, Treatment)[T.south]"], most=16)
    ('age', 'C(regio...south]')
    >>> short_names(["C(region)[T.a]:income", "C(region)[T.b]:income"], most=16)
    ('C(re...a]:inc...', 'C(re...b]:inc...')
    """
    whole = [" ".join(name.split()) for name in names]
    short = [_without_middle(name, most) for name in whole]
    for form in {one for one in short if short.count(one) > 1}:
        places = [i for i, one in enumerate(short) if one == form]
        for i, name in zip(places, _told_apart([whole[i] for i in places], most), strict=True):
            short[i] = name
    return tuple(
        f"{one[: most - 5]} #{short[:i].count(one) + 1}" if short.count(one) > 1 else one
        for i, one in enumerate(short)
    )


def thinned(count: int, room: float) -> range:
    """Positions of the ticks to label, equally spaced, at most ``room`` of them.

    Examples
    --------
    >>> list(thinned(5, 10.0)), list(thinned(10, 4.0))
    ([0, 1, 2, 3, 4], [0, 3, 6, 9])
    """
    step = max(1, -(-count // max(1, int(room))))
    return range(0, count, step)


def _without_middle(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    head = (most - len(_DOTS) + 1) // 2
    return name[:head] + _DOTS + name[len(name) - (most - len(_DOTS) - head) :]


def _told_apart(names: Sequence[str], most: int) -> list[str]:
    """Show each name from the first character where they differ."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    start = len(list(same))
    stop = start + most - _HEAD - 2 * len(_DOTS)
    return [name[:_HEAD] + _DOTS + name[start:stop] + _DOTS for name in names]
