"""A callable subpackage: ``dp.design(...)`` declares a survey design."""

from __future__ import annotations

import sys
from types import ModuleType

from dpmodels.column_roles import SurveyDesign


class CallableModule(ModuleType):
    """The package ``dpmodels.design``, callable as :class:`dpmodels.column_roles.SurveyDesign`."""

    __call__ = staticmethod(SurveyDesign)


def _opened(name: str) -> CallableModule:
    package = sys.modules[name]
    package.__class__ = CallableModule
    assert isinstance(package, CallableModule)
    return package


design: CallableModule = _opened("dpmodels.design")
