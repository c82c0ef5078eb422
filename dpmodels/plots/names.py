"""Names on pictures: short, distinct, as many as there is room for."""

from collections.abc import Sequence

_DOTS = "..."


def short_names(names: Sequence[str], most: int = 24) -> tuple[str, ...]:
    """Names with the middle of long ones left out, still all distinct.

    Parameters
    ----------
    names : sequence of str
        Names in the order of the picture.
    most : int
        Characters a name may have, at least 8.

    Returns
    -------
    tuple of str
        A name whose short form another one shares stays whole.

    Examples
    --------
    >>> short_names(["age", "C(region, Treatment)[T.south]"], most=16)
    ('age', 'C(regio...south]')
    """
    whole = [" ".join(name.split()) for name in names]
    short = [name if len(name) <= most else _shortened(name, most) for name in whole]
    return tuple(
        one if short.count(one) == 1 else name for one, name in zip(short, whole, strict=True)
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


def _shortened(name: str, most: int) -> str:
    head = (most - len(_DOTS) + 1) // 2
    return name[:head] + _DOTS + name[len(name) - (most - len(_DOTS) - head) :]
