"""``dp.codebook``: declare variables, or draft their declarations from public sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmodels.codebook import Codebook

if TYPE_CHECKING:
    from dpmodels.dictionaries.draft import Draft


class codebook(Codebook):  # noqa: N801
    """Declare public bounds and levels of variables, by name.

    Parameters
    ----------
    variables : mapping, optional
        Declarations by name, for names that are not Python identifiers.
    person : str, optional
        The column that says whose a row is, as for :class:`Codebook`.
    **named
        Declarations by name, as for :class:`Codebook`, which is what is made of them.

    Raises
    ------
    CodebookError
        If a declaration cannot be used; the message names the variable.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), sex=["F", "M"])
    >>> print(cb)
    variable  type         declared
    age       numeric      0 to 100
    sex       categorical  F | M
    """

    @staticmethod
    def draft(source: object) -> Draft:
        """Draft a codebook from what public documents say, never from rows.

        Parameters
        ----------
        source : path, table, schema or model
            A data dictionary as CSV or Excel, one variable a line, with columns name and type, min,
            max, levels (``1=low; 2=high``), label, unit, missing, or their usual synonyms;
            DDI-Codebook as XML; a file of SPSS, Stata or SAS, of which the labels are read; a table
            schema or data package of Frictionless or a JSON Schema, as JSON or dict; a pandera
            schema or a pydantic model; a DataFrame (pandas, polars, pyarrow, Dask), an Arrow or
            polars schema, a dict of types or a Parquet file, of which names and types are read; or
            a draft or codebook that was saved.

        Returns
        -------
        Draft
            What the source says, with ``?`` for the bounds and levels that it does not. Two say
            more: ``draft(a) | draft(b)``.

        Raises
        ------
        CodebookError
            If the source says nothing of variables, contradicts itself or is damaged.

        Notes
        -----
        No cell of a row is read. The categories of pandas and Arrow types are passed over, since
        they are commonly made of the rows; where they were declared, give them:
        ``.complete(sex=table.sex.dtype)``. A document is taken at its word: that it was not itself
        made of the rows is for whoever gives it to know.

        Examples
        --------
        >>> import dpmodels as dp
        >>> fields = [{"name": "age", "type": "integer", "constraints": {"minimum": 0}}]
        >>> print(dp.codebook.draft({"fields": fields}))
        variable  type     declared
        age       integer  0 to ?
        Not known (?): 'age'; draft.complete(age=(lower, upper))
        """
        from dpmodels.dictionaries.read import read

        return read(source)

    @staticmethod
    def from_public(data: object, widen: float = 0.1) -> Draft:
        """Read bounds and levels off rows that are public: never off those to be protected.

        Parameters
        ----------
        data : DataFrame
            Public rows, such as a published survey of the same variables.
        widen : float, default 0.1
            What ranges are widened by at both ends, as a share of their length; those of whole
            numbers and of days to the next. None is widened from above zero to below it, nor one of
            0 and 1 alone.

        Returns
        -------
        Draft
            The label of each variable says where it comes from, and so does whatever prints it.

        Raises
        ------
        FrameError, CodebookError, ArgumentError
            If it is no table in memory, names of columns are not text of their own, or `widen` is
            no number from 0 to 100.

        Notes
        -----
        Where a dictionary knows some of the bounds, public rows may give the others:
        ``draft | dp.codebook.from_public(table[list(draft.unknown)])``.

        Examples
        --------
        >>> import dpmodels as dp
        >>> import pandas as pd
        >>> print(dp.codebook.from_public(pd.DataFrame({"visits": [0, 4, 20]})))
        variable  type     declared  label
        visits    integer  0 to 22   from a public sample
        From a public sample of 3 rows, ranges widened by 10%
        """
        from dpmodels.dictionaries.public_sample import from_public

        return from_public(data, widen)
