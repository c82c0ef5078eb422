"""What no result gives away, and what to write instead."""

from __future__ import annotations

NOT_PICKLED = "results are not pickled; write fit.save(path) and dp.load(path)"

NO_SCORE = (
    "accuracy on the private rows is not released with the coefficients; for public rows compare "
    "predict(newdata) with their response"
)


def per_row(name: str, instead: str) -> str:
    """Say why a quantity that is a function of single private rows is not there."""
    return (
        f"{name} of the private rows would give the rows away and do not exist in this result; for "
        f"public rows use {instead}"
    )
