"""A bar of tqdm's that a fork does not block, imported when rows are read."""

import os
from threading import RLock
from typing import ClassVar
from weakref import WeakSet

from tqdm import tqdm


class Bar(tqdm):  # type: ignore[misc]
    """A bar with a lock of this process alone.

    tqdm's own is shared with forked processes: one that is killed while it holds it would let every
    bar of the others, and so every release, wait for ever.
    """

    _lock = RLock()
    _instances: ClassVar["WeakSet[object]"] = WeakSet()
    monitor_interval = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: Bar.set_lock(RLock()))
