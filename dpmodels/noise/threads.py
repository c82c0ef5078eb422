"""One thread for the linear algebra library, where threads of ours are faster or bits matter."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread inside a ``with`` statement."""
    limit: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries that are loaded, once: a search takes longer than a small table."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
