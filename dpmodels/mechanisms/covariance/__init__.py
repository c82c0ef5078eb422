"""Strategies that release a covariance or second-moment matrix."""
