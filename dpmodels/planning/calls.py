"""``call``: the verbs, which write a call and do not make it."""

from __future__ import annotations

from typing import Final

from dpmodels.sessions.method import Calls

call: Final = Calls()
