"""Devices by which respondents randomise their own answers, with exact coins."""
