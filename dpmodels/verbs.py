"""The verbs as their files declare them, by name, and their parameters as text."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce
from importlib.resources import files
from operator import or_
from types import MappingProxyType, NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from dpmodels.errors import ArgumentError
from dpmodels.external_files import Shape

SpecFunction = TypeVar("SpecFunction", bound=Callable[..., object])
_NONE: Final[Mapping[str, object]] = MappingProxyType({})
# Parameters of a verb's function that all verbs have.
_COMMON: Final = ("formula", "data", "answers", "given", "mechanism", "shared")


class Verb(NamedTuple):
    """A verb as its file declares it; sessions, commands, plans and sites are derived from this."""

    name: str
    spec: Callable[..., Any]  # From a request to its specification
    # What mechanism="auto" is if sites send noisy integers once; empty if none is one sum of them.
    gaussian: str
    # What it is if sites add the noise of many rounds and cannot add that of the usual choice.
    joint: str
    site_defaults: Mapping[str, object]  # What None means if sites send something once
    spends_delta: bool  # Whether releases spend a delta, so that Gaussian noise has the rest
    # A formula of a, b and the factor g, and a mechanism without a delta, by which it is audited.
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
    def options(self) -> dict[str, object]:
        """Its own options with their defaults."""
        parameters = inspect.signature(inspect.unwrap(self.function)).parameters
        return {
            name: parameter.default for name, parameter in parameters.items() if name not in _COMMON
        }

    @property
    def shapes(self) -> dict[str, Shape]:
        """What files may hold for each option, by the annotations."""
        hints = get_type_hints(inspect.unwrap(self.function))
        return {name: _plain_shape(hints[name]) for name in self.options}

    @property
    def result(self) -> Any:
        """The usual class of its results."""
        returned = get_type_hints(inspect.unwrap(self.function)).get("return", object)
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

    It is defined in ``dpmodels/models``, beside the function ``dp_<verb>``. The options are fields
    of :class:`Verb`.
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


# Parameters as texts: values written by hand, and what a docstring says of them.
#
# Commands and the forms of a gateway read values with it. An annotation has a text form if it is
# of numbers, texts, None, values of a `Literal`, or lists of these, separated by commas.

_NUMBERS: Final = {int: "INT", float: "NUMBER"}
_ITERABLES: Final = (Iterable, Sequence, tuple, list)
_MARKUP = re.compile(r":\w+:`~?\.?([^`]+)`|``(.+?)``|`([^`]+)`")
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z0-9\"'`])")


def members(annotation: object) -> tuple[object, ...]:
    """Return the alternatives of an annotation.

    >>> members(int | Literal["mean", False] | None)
    (<class 'int'>, 'mean', False, None)
    """
    kind = get_origin(annotation)
    if kind in (Union, UnionType):
        return tuple(member for part in get_args(annotation) for member in members(part))
    if kind is Literal:
        return get_args(annotation)
    return (None if annotation is NoneType else annotation,)


def read(allowed: Sequence[object], text: str, *, none: bool = False) -> Any:
    """Convert a text to an allowed value; the function itself checks names of options.

    >>> read(members(float | Iterable[float]), "0.25,0.5"), read(members(int | str), "week")
    ((0.25, 0.5), 'week')
    """
    inner = [
        element
        for member in allowed
        if get_origin(member) in _ITERABLES
        for element in _inner(member)
    ]
    if inner and text == "[]":
        return ()
    # Whether one text may stand for one value.
    is_text = any(
        member in (*_NUMBERS, str, Any, object) or isinstance(member, str) for member in allowed
    )
    if inner and ("," in text or not is_text):
        return tuple(read(inner, part.strip()) for part in text.split(",") if part.strip())
    return None if none and text == "none" else _read_one(allowed, text)


def _read_one(allowed: Sequence[object], text: str) -> object:
    """Return a number where one is allowed and the text is one, else the text itself."""
    anything = Any in allowed or object in allowed
    for kind in _NUMBERS:
        if kind in allowed or anything:
            try:
                return kind(text)
            except ValueError:
                continue
    if anything or any(member is str or isinstance(member, str) for member in allowed):
        return text
    raise ArgumentError(f"{text!r}: expected {written_form(allowed)}")


def _inner(annotation: object) -> tuple[object, ...]:
    return tuple(
        member for part in get_args(annotation) if part is not ... for member in members(part)
    )


def written_form(allowed: Sequence[object]) -> str:
    """Return how a value is written."""
    inner = [written_form(_inner(member)) for member in allowed if get_origin(member) in _ITERABLES]
    literals = [member for member in allowed if isinstance(member, str)]
    forms = [form for kind, form in _NUMBERS.items() if kind in allowed]
    forms += (
        ["TEXT"] * (str in allowed) + ["VALUE"] * (Any in allowed or object in allowed) + literals
    )
    forms = forms[1:] if forms[:2] == ["INT", "NUMBER"] else forms
    single = "|".join(forms)
    lists = [f"{form},..." for form in inner if form != single]
    return "|".join([*forms, *lists]) + ",..." * (single in inner)


def signature(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, with evaluated annotations."""
    return dict(evaluated_signature(function).parameters)


def evaluated_signature(function: Callable[..., object]) -> inspect.Signature:
    """Return a signature with annotations evaluated, also those of wrapped functions."""
    names: dict[str, object] = {}
    part: object = function
    while part is not None:
        names = {**names, **getattr(part, "__globals__", {})}
        part = getattr(part, "__wrapped__", None)
    raw_signature = inspect.signature(function)
    kinds = {name: parameter.annotation for name, parameter in raw_signature.parameters.items()}
    texts = SimpleNamespace(__annotations__={**kinds, "return": raw_signature.return_annotation})
    types = get_type_hints(texts, names)
    parameters = [
        parameter.replace(annotation=types[name])
        for name, parameter in raw_signature.parameters.items()
    ]
    return raw_signature.replace(parameters=parameters, return_annotation=types["return"])


class ParameterDoc(NamedTuple):
    """The documentation of a parameter: its first sentence, and its options."""

    text: str = ""
    choices: tuple[str, ...] = ()


def parameter_docs(doc: str) -> dict[str, ParameterDoc]:
    """Return the documentation of each parameter.

    >>> parameter_docs('''Fit.
    ...
    ... Parameters
    ... ----------
    ... vcov : {"iid", None}, optional
    ...     Of residuals, as for :func:`f`. None by default.
    ... ''')
    {'vcov': ParameterDoc(text='of residuals, as for f', choices=('iid', 'none'))}
    """
    _, separator, rest = doc.partition("\nParameters\n")
    body = re.split(r"\n\w[\w ]*\n-{3,}\n", rest.partition("\n")[2])[0] if separator else ""
    docs: dict[str, ParameterDoc] = {}
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" :")
        sentence = first_sentence(text)
        listed = re.search(r"\{(.+?)\}", kind)
        words = map(str.strip, listed[1].split(",") if listed else ())
        choices = tuple("none" if word == "None" else word.strip('" ') for word in words)
        parameter_doc = ParameterDoc(sentence[:1].lower() + sentence[1:], choices)
        docs |= dict.fromkeys((name.strip("* ") for name in names.split(",")), parameter_doc)
    return docs


def first_sentence(text: str) -> str:
    """Return the first sentence without its full stop and without markup."""
    plain = _MARKUP.sub(lambda match: next(filter(None, match.groups())), " ".join(text.split()))
    return _SENTENCE.split(plain)[0].rstrip(".")


# Parameters that methods of many results have in common.

_PARAMETERS: Final = "Parameters\n----------\n"
_SHARED: Final = {
    "ax": "ax : matplotlib Axes, optional\n    Where to draw; a new figure by default.",
    "level": "level : float\n    Coverage of each interval by itself, in (0, 1).",
    "group": (
        "group : level or tuple of levels, optional\n"
        "    Which group; all of them, each by itself, by default."
    ),
    "variable": "variable : str, optional\n    Which one; the first by default.",
    "caption": (
        "caption : bool\n    Whether guarantee, neighbours and noise stand under the picture."
    ),
    "newdata": (
        "newdata : frame, mapping or path\n"
        "    Rows that are not private, with the variables of the terms. A cell that is neither\n"
        "    missing nor what the codebook declares is an error."
    ),
    "clip": (
        "clip : bool, default False\n"
        "    Whether numbers outside the codebook's bounds are clipped to them, as the fit's rows\n"
        "    were; else such rows are nan, and an ``OutsideWarning`` counts them."
    ),
}
Documented = TypeVar("Documented", bound=Callable[..., object])


def documented(function: Documented) -> Documented:
    """Add the shared parameters that a docstring leaves out, in the order of the signature.

    >>> def plot(kind: str, level: float = 0.95) -> None:
    ...     "Draw a kind."
    >>> documented(plot).__doc__.splitlines()[-2:]
    ['level : float', '    Coverage of each interval by itself, in (0, 1).']
    """
    head, *sections = re.split(r"\n\n(?=\w[\w ]*\n-{3,}\n)", inspect.getdoc(function) or "")
    not_parameters = [section for section in sections if not section.startswith(_PARAMETERS)]
    section = "".join(section for section in sections if section not in not_parameters)
    entries = dict(_SHARED)
    for entry in re.split(r"\n(?=\S)", section.removeprefix(_PARAMETERS)):
        names = re.split(" :|\n", entry)[0].split(",")
        entries |= dict.fromkeys((name.strip("* ") for name in names), entry)
    parameters = inspect.signature(function).parameters
    listed = dict.fromkeys(entries[name] for name in parameters if name in entries)
    function.__doc__ = "\n\n".join([head, _PARAMETERS + "\n".join(listed), *not_parameters])
    return function
