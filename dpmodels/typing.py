"""Names of types for all subpackages."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AnyPath = str | PathLike[str]
# Codes a public table as columns of a design.
Coder = Callable[[object], Floats]
