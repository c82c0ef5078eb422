"""Graphical models of one table, fitted to released margins; rows drawn from them."""
