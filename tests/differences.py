"""Derivatives by central differences, to check those that are written by hand."""

import numpy as np


def derivative(function, point, step=1e-6):
    """The derivative of a function at a point, with the point's entries on the last axis."""
    point = np.asarray(point, dtype=float)
    columns = []
    for at in np.ndindex(point.shape):
        move = np.zeros(point.shape)
        move[at] = step
        change = np.asarray(function(point + move)) - np.asarray(function(point - move))
        columns.append(change / (2 * step))
    return np.stack(columns, axis=-1)


def symmetric_derivative(function, matrix, step=1e-6):
    """The derivatives by the entries of a symmetric matrix, those above the diagonal once."""
    triangle = np.zeros(np.shape(matrix))
    for at in zip(*np.triu_indices(len(matrix)), strict=True):
        move = np.zeros(np.shape(matrix))
        move[at] = move[at[::-1]] = step
        triangle[at] = (function(matrix + move) - function(matrix - move)) / (2 * step)
    return triangle
