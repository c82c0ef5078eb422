"""All that a result shows of itself, whatever its kind."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable, PrivacyError

# Words a table must not print where a number was meant.
NO_NUMBER = re.compile(r"(?<![\w.\'=])[-+]?(nan|inf|NaN|None)(?![\w\'])")
# What is asked with words of its own, or draws.
ASIDE = ("plot", "biplot", "save", "predict", "coder", "to_")


def parts(fit: Any) -> Iterator[tuple[str, Any]]:
    """Every public attribute, and what every method gives that needs no argument.

    What does not exist for a result says why.
    """
    for name in dir(fit):
        if name.startswith(("_", *ASIDE)):
            continue
        try:
            value = getattr(fit, name)
            if callable(value):
                needed = [
                    parameter
                    for parameter in inspect.signature(value).parameters.values()
                    if parameter.default is parameter.empty
                    and parameter.kind is not parameter.VAR_KEYWORD
                ]
                if needed or inspect.isclass(value):
                    continue
                value = value()
        except (NotAvailable, PrivacyError) as reason:
            value = str(reason)
        yield name, value


def texts(fit: Any) -> list[str]:
    """The printed table in every format."""
    summary = fit.summary(notes="all")
    formats = (summary.as_text, summary.as_html, summary.as_latex, summary.as_markdown)
    return [str(summary), fit._repr_html_(), *(as_format() for as_format in formats)]


def as_text(value: Any) -> str:
    """All cells of a table, or what else a value shows."""
    return value.to_csv() if isinstance(value, pd.DataFrame | pd.Series) else repr(value)


def whole_and_printable(fit: Any) -> None:
    """Everything can be asked for; what is released is finite, and so is what is printed."""
    for number in fit.release.__dict__.values():
        if isinstance(number, np.ndarray):
            assert not np.isinf(number).any()
    for _ in parts(fit):
        pass
    summary = fit.summary(notes="all")
    for text in (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()):
        assert len(text) > 200
        match = NO_NUMBER.search(text)
        assert not match, f"printed: {text[max(0, match.start() - 200) : match.end() + 80]}"
    assert type(fit).__name__ in repr(fit)
