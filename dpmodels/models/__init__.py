"""The front door: one verb a file."""

from dpmodels.models import printing as printing
