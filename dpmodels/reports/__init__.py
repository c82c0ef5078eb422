"""How results print: one report per kind of result, registered with ``results.base.report_of``.

No result imports this package; ``models/release.py`` imports the reports of a kind at its first
print, so that everything that a verb returns or ``load`` reads can be printed.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
