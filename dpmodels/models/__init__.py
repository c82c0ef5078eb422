"""The verbs, one per module, and their shared specification."""

from dpmodels.models import release as release
