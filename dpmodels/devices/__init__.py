"""Devices by which respondents randomise their own answers; public facts, and exact coins."""
