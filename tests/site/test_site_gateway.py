"""The pages of a gateway in a browser: what can be read by whom, at which widths, and asked."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "gateway"))
from browsers import ASK, started
from gates import serving
