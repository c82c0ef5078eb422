"""Many small cases of a test in one loop, where an item would take longer than its case."""

import inspect
from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

Test = Callable[..., None]


def each(names: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test on every case, as ``parametrize`` does; what a case raises has a note with it."""
    words, listed = [name.strip() for name in names.split(",")], list(cases)
    assert listed, "there is no case"

    def folded(test: Test) -> Test:
        def loop(**alternatives: Any) -> None:
            for case in listed:
                values = case if len(words) > 1 else (case,)
                try:
                    test(**alternatives, **dict(zip(words, values, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the case {names} = {case!r:.500}")
                    raise

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in words]
        update_wrapper(loop, test)
        loop.__dict__["__signature__"] = signature.replace(parameters=left)
        return loop

    return folded
