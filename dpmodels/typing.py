"""Names of types for all subpackages."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Integers or floats, which functions treat alike.
Numbers = NDArray[Any]
AnyPath = str | PathLike[str]
# Codes a public table as columns of a design.
Coder = Callable[[object], Floats]
