"""Reports of results, imported at the first print."""

from __future__ import annotations

from dpmodels.report import Report
from dpmodels.results.base import Printed, lay_out, report_of


@lay_out.register
def lay_out_printed(result: Printed) -> Report:
    """Return the report of a result, once the reports of all kinds are registered.

    A thread that prints while another one imports the reports waits until all are there.
    """
    from dpmodels import reports as reports

    return report_of(result)
