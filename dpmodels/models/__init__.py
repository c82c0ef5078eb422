"""The verbs, one per module, and their shared specification."""

from dpmodels.models import printing as printing
