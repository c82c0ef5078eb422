"""The verbs, one per module, and their shared specification."""

from dpmodels.models import replay as replay
