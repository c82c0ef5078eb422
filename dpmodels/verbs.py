"""The verbs as their files declare them, by name."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, reduce
from importlib.resources import files
from inspect import signature, unwrap
from operator import or_
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from dpmodels.external_files import Shape

SpecFunction = TypeVar("SpecFunction", bound=Callable[..., object])
_NONE: Final[Mapping[str, object]] = MappingProxyType({})
# Parameters of a verb's function that all verbs have.
_COMMON: Final = ("formula", "data", "answers", "given", "mechanism", "shared")


class Verb(NamedTuple):
    """A verb as its file declares it; sessions, commands, plans and sites are derived from this."""

    name: str
    spec: Callable[..., Any]  # From a request to its specification
    gaussian: str
    joint: str
    site_defaults: Mapping[str, object]
    spends_delta: bool
    audited: tuple[str, str] | None
    designs: bool = False  # Whether its estimates may be of a survey design
    instead: str = ""  # Why sites cannot add its noise, and what to write instead

    @property
    def function(self) -> Callable[..., Any]:
        """The function, defined beside the specification."""
        function: Callable[..., object] = vars(sys.modules[self.spec.__module__])[f"dp_{self.name}"]
        return function

    @property
    def charges(self) -> bool:
        """Whether it charges a ledger, as what reads private rows does."""
        return self.name not in UNCHARGED

    @property
    def options(self) -> dict[str, Any]:
        """Its own options with their defaults."""
        parameters = signature(unwrap(self.function)).parameters
        return {
            name: parameter.default for name, parameter in parameters.items() if name not in _COMMON
        }

    @property
    def shapes(self) -> dict[str, Shape]:
        """What files may hold for each option, by the annotations."""
        hints = get_type_hints(unwrap(self.function))
        return {name: _plain_shape(hints[name]) for name in self.options}

    @property
    def result(self) -> Any:
        """The usual class of its results."""
        returned = get_type_hints(unwrap(self.function)).get("return", object)
        return (get_args(returned) or (returned,))[0]

    def sent(self, options: Mapping[str, object]) -> dict[str, object]:
        """Return options with the values of None if sites send something once."""
        return {
            name: self.site_defaults.get(name) if value is None else value
            for name, value in options.items()
        }


def _plain_shape(annotation: object) -> Shape:
    """Return an annotation with tuples of numbers for types of many values."""
    kinds = get_args(annotation) if get_origin(annotation) is UnionType else (annotation,)
    plain = [get_origin(kind) is Literal or not get_args(kind) for kind in kinds]
    pairs = zip(kinds, plain, strict=True)
    return reduce(or_, (kind if is_plain else tuple[float, ...] for kind, is_plain in pairs))


# The verbs that read public answers: they charge no ledger.
UNCHARGED: Final = ("survey",)
# The verbs whose modules were imported.
VERBS: Final[dict[str, Verb]] = {}


def spec_of(
    verb: str,
    *,
    gaussian: str = "",
    joint: str = "",
    site_defaults: Mapping[str, object] = _NONE,
    spends_delta: bool = False,
    audited: tuple[str, str] | None = None,
    designs: bool = False,
    instead: str = "",
) -> Callable[[SpecFunction], SpecFunction]:
    """Declare a verb: register the function that makes the specification of its requests.

    It is defined in ``dpmodels/models``, beside the function ``dp_<verb>``.

    Parameters
    ----------
    gaussian
        What ``mechanism="auto"`` is if sites send noisy integers once; empty if no mechanism is
        one sum of integers.
    joint
        What it is if sites add the noise of many rounds and cannot add that of the usual choice.
    among_sites
        What None means, by option, if sites send something once.
    spends_delta
        Whether its releases spend a delta, so that Gaussian noise has the rest.
    audited
        A formula of ``a``, ``b`` and the factor ``g``, and a mechanism without a delta, by which
        it is audited.
    designs
        Whether it takes a survey design.
    instead
        Of a verb whose noise sites cannot add: why, and what to write instead.
    """

    def register(function: SpecFunction) -> SpecFunction:
        fields = (gaussian, joint, site_defaults, spends_delta, audited, designs, instead)
        VERBS[verb] = Verb(verb, function, *fields)
        return function

    return register


@cache
def exported() -> dict[str, str]:
    """Return the files in ``models`` of the verbs of the package's stub, by name."""
    stub = files("dpmodels").joinpath("__init__.pyi").read_text("utf-8")
    matches = re.findall(r"^from \.models\.(\w+) import dp_(\w+) as dp_\2$", stub, re.MULTILINE)
    return {name: module for module, name in sorted(matches, key=lambda line: line[1])}


def verb_names() -> tuple[str, ...]:
    """Return the names of all verbs, of the package's stub and declared since; import none."""
    return tuple(dict.fromkeys((*exported(), *VERBS)))
