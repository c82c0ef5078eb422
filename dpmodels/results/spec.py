"""What a request says of its result before there is a release, and how one becomes the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from dpmodels.question import Question
from dpmodels.released import MomentsRelease
from dpmodels.results.call import AnyCall, MomentsCall

Made = TypeVar("Made", covariant=True)


def accept(release: Any) -> None:
    """Accept any release."""


@dataclass(frozen=True, repr=False)
class Spec(Generic[Made]):
    """The public facts of a request, and the result that they give with a release."""

    question: Question | None
    call: AnyCall
    result: Callable[[Any, Any], Made]  # From a call and a release
    # Sizes of the release's arrays that its call does not imply.
    sizes: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    # Refuses a release from a file that this request cannot have.
    check: Callable[[Any], None] = field(default=accept, kw_only=True)

    def of(self, release: Any, ledger: str = "", reason: str = "") -> Made:
        """Return the result of a release, with what the ledger said and why this mechanism."""
        call: Any = replace(self.call, ledger=ledger, reason=reason)
        if isinstance(call, MomentsCall) and isinstance(release, MomentsRelease):
            call = call.held_in(release.ball)
        result = self.result(call, release)
        object.__setattr__(result, "request", self.question)
        return result
