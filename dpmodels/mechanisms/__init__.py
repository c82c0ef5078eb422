"""Mechanisms: the only way from private to released values; one strategy per file.

A table of each family names its mechanisms (`tables.py` has all of them). Adding one adds a file
and a line. A family is imported when one of its names is first used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
