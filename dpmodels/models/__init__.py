"""The verbs, one per module, and their shared specification."""

from dpmodels.models import report_loading as report_loading
