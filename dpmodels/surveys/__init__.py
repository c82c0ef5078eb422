"""Answers that respondents randomised before they came: read, counted and fitted, uncharged.

What is read here was released by whom it is about. Nothing here protects a column that came as it
was, and no mechanism, ledger or private row is known here.
"""
