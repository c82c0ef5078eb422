"""The command line: a command for every verb, and commands for ledgers, studies and sites."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from dpmodels.errors import DPModelsError
from dpmodels.shell.command_options import completion
from dpmodels.shell.commands import commands, parser
from dpmodels.shell.outputs import main_job, tell

_INTERRUPTED = 130
_UNREAD = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            root = parser()
            options = root.parse_args(argv)
            if options.print_completion is not None:
                tell(completion(root, options.print_completion))
                return 0
            return (
                main_job() if options.command is None else commands()[options.command].run(options)
            )
    except DPModelsError as error:
        print(f"dpmodels: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpmodels: interrupted; what was charged to a ledger stays spent", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _UNREAD


def _warn(message: Warning | str, category: type[Warning], *location: object) -> None:
    """Print a warning like an error, without its line of code."""
    print(f"dpmodels: {category.__name__}: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
