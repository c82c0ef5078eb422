"""Strategies that release a subspace: orthonormal directions, and no matrix."""
