"""Devices of randomised questions, as words of the shell."""

from __future__ import annotations

import argparse
from typing import Any, Final

from dpmodels.errors import ArgumentError
from dpmodels.shell.words import dest, read

DEVICE: Final = "device"
EXAMPLE: Final = "drug=no,yes:1.0"
_FORM: Final = "NAME=LEVEL,LEVEL:EPS"


class _Devices(argparse.Action):
    """Makes the devices of all questions, each a randomized response."""

    def __call__(self, parser: Any, words: Any, texts: Any, option: Any = None) -> None:
        setattr(words, self.dest, dict(map(_device, texts)))


def add_devices(group: Any) -> None:
    """Add the option of devices, one for each randomised question."""
    group.add_argument(
        f"--{DEVICE}",
        dest=dest(DEVICE),
        nargs="+",
        action=_Devices,
        required=True,
        metavar=_FORM,
        help=f"answers and privacy loss of each randomised question, such as {EXAMPLE}",
    )


def _device(text: str) -> tuple[str, Any]:
    from dpmodels.devices.randomized_response import randomized_response

    name, _, rest = text.partition("=")
    levels, _, eps = rest.rpartition(":")
    try:
        answers = [read((Any,), level) for level in levels.split(",")]
        return name, randomized_response(answers, eps=float(eps))
    except ValueError as error:
        why = str(error) if isinstance(error, ArgumentError) else f"expected {_FORM}"
        raise ArgumentError(f"--{DEVICE} {text!r}: {why}; write {EXAMPLE}") from None
