"""An exception that leaves the package carries no cell: frames, contexts and messages are read."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pandas as pd
import pytest
from contract_cases import Case
from law_canary import LABEL, TRACES, rare

import dpmodels as dp
from dpmodels import errors
from dpmodels.design import rows
from dpmodels.errors import FrameError, LedgerError
from dpmodels.statistics import Statistic

Stage = Callable[[pytest.MonkeyPatch], type[BaseException]]


def a_source_is_interrupted(patch: pytest.MonkeyPatch) -> type[BaseException]:
    def interrupted(chunks: Iterator[Any], **_: object) -> Iterator[Any]:
        cells = next(chunks)
        yield cells
        raise KeyboardInterrupt

    patch.setattr(rows, "progress", interrupted)
    return KeyboardInterrupt


def memory_ends_in_a_statistic(patch: pytest.MonkeyPatch) -> type[BaseException]:
    def fails(self: Statistic, name: str, exact: object, n_rows: int, *_: object) -> NoReturn:
        self.name = name
        raise MemoryError

    patch.setattr(Statistic, "__init__", fails)
    return MemoryError


def a_cell_is_refused(patch: pytest.MonkeyPatch) -> type[BaseException]:
    """With a message of another library behind ``from None``, which quotes the cell."""

    def refused(codebook: object, chunk: dict[str, Any]) -> NoReturn:
        try:
            float(LABEL)
        except ValueError:
            raise FrameError("a cell cannot be read") from None

    patch.setattr(rows, "converted", refused)
    patch.setattr(rows, "level_names", lambda cells: refused(None, {"": cells}))
    return FrameError


def a_worker_thread_fails(patch: pytest.MonkeyPatch) -> type[BaseException]:
    from dpmodels.frames.parquet import prefetch

    def reading(chunks: Iterator[Any]) -> Iterator[Any]:
        cells = next(chunks)
        yield cells
        raise RuntimeError

    patch.setattr(rows, "progress", lambda chunks, **_: prefetch(reading(chunks)))
    return RuntimeError


def the_ledger_cannot_record(patch: pytest.MonkeyPatch) -> type[BaseException]:
    def fails(self: dp.Ledger, entry: object, digest: object) -> NoReturn:
        raise LedgerError("its disk is full")

    patch.setattr(dp.Ledger, "released", fails)
    return LedgerError


STAGES: tuple[Stage, ...] = (
    a_source_is_interrupted,
    memory_ends_in_a_statistic,
    a_cell_is_refused,
    a_worker_thread_fails,
    the_ledger_cannot_record,
)


def captured(error: BaseException) -> str:
    """Return what a debugger shows below the caller's frame: locals, contexts and messages."""
    texts, visited = [], set[int]()

    def visit(part: BaseException | None, skipped: int) -> None:
        if part is None or id(part) in visited:
            return
        visited.add(id(part))
        texts.append(repr(part))
        frames = list(traceback.walk_tb(part.__traceback__))
        depth = [frame.f_code.co_filename for frame, _ in frames]
        start = depth.index(errors.__file__) if skipped else 0
        summary = traceback.StackSummary.extract(iter(frames[start:]), capture_locals=True)
        texts.extend(
            f"{name} = {text}"
            for frame_summary in summary
            for name, text in (frame_summary.locals or {}).items()
        )
        visit(part.__cause__, 0)
        visit(part.__context__, 0)

    visit(error, 1)
    return "\n".join(texts)


def an_exception_carries_no_cell(case: Case, stage: Stage, patch: pytest.MonkeyPatch) -> None:
    data = pd.DataFrame(rare())
    ledger = dp.Ledger(budget=case.guarantee, adjacency=case.adjacency)
    with patch.context() as within:
        kind = stage(within)
        with pytest.raises(kind) as raised:
            case.ask(data, ledger=ledger)
    text = captured(raised.value)
    assert "function = <function dp_" in text
    for trace in TRACES:
        assert trace not in text, f"{trace} is shown"


def the_handled_exception_is_left_alone() -> None:
    """One that the caller is handling keeps its frames."""

    def load() -> NoReturn:
        path = "a path of the caller"
        raise OSError(path)

    try:
        load()
    except OSError as handled:
        with pytest.raises(FrameError):
            dp.dp_mean("~ a", [1.0], codebook=dp.codebook(a=(0, 1)), eps=1.0)
        frames = list(traceback.walk_tb(handled.__traceback__))
    assert frames[-1][0].f_locals["path"] == "a path of the caller"
