"""Constraints on coefficients: their inequalities, and the search's arithmetic under them."""
