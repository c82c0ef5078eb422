"""Answers that respondents have already randomised: read, counted and fitted without a charge.

Only the device protects an answer. Nothing here adds noise, so a column that was not randomised is
not protected.
"""
