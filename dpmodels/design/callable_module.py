"""A callable subpackage: ``dp.design(...)`` declares a survey design."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TypeVar

from dpmodels.column_roles import SurveyDesign

Kind = TypeVar("Kind", bound=ModuleType)


class CallableModule(ModuleType):
    """The package ``dpmodels.design``, callable as :class:`dpmodels.column_roles.SurveyDesign`."""

    __call__ = staticmethod(SurveyDesign)


def opened(name: str, kind: type[Kind]) -> Kind:
    """Return a package as a module of a class, such as one that can be called."""
    package = sys.modules[name]
    package.__class__ = kind
    assert isinstance(package, kind)
    return package


design: CallableModule = opened("dpmodels.design", CallableModule)
