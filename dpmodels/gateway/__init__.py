"""A server for analysts who may not see the rows, and its client: ``dpmodels serve``."""
