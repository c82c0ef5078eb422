"""What is said where reading ends before the last row."""


def unfinished(what: str) -> str:
    """Word the error of rows that could not be read to the end.

    Parameters
    ----------
    what : str
        What failed and what to do; it may name files and containers, never a cell.

    Examples
    --------
    >>> from dpmodels.errors import FrameError
    >>> raise FrameError(unfinished("'rows.parquet' is damaged: write the file anew"))
    Traceback (most recent call last):
        ...
    dpmodels.errors.FrameError: 'rows.parquet' is damaged: write the file anew. Nothing was
    released. A ledger is charged before the first row is read, so it has been, and remains so
    """
    return (
        f"{what}. Nothing was released. A ledger is charged before the first row is read, so it "
        "has been, and remains so"
    )
