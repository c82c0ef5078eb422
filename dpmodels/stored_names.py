"""Names under which classes and fields are hashed and stored, where the code has other names.

The digests of releases in ledgers hash the names of classes, and the files of results and sites
hold the names of fields. Both stay as they are when the code renames a class or a field: the former
name is listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

# By class.
CLASSES: Final[Mapping[str, str]] = {"MechanismInfo": "Card"}
# By the class that declares the field, and by field.
FIELDS: Final[Mapping[str, Mapping[str, str]]] = {"Released": {"info": "card"}}


def class_name(kind: type[object]) -> str:
    """Return the stored name of a class."""
    return CLASSES.get(kind.__name__, kind.__name__)


def field_names(kind: type[Any]) -> dict[str, str]:
    """Return the fields of a dataclass by their stored names.

    >>> from dpmodels.released import MechanismInfo, MomentsRelease
    >>> class_name(MechanismInfo), field_names(MomentsRelease)["card"]
    ('Card', 'info')
    """
    stored: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        stored |= FIELDS.get(base.__name__, {})
    return {stored.get(field.name, field.name): field.name for field in fields(kind)}
