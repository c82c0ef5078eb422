"""The front door: one verb a file."""

from dpmodels import reports as reports
