"""The version of the package, which its metadata repeat."""

from typing import Final

__version__: Final = "0.1.0"
