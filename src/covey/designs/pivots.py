"""When a pivot of a group's correlation matrix means a new direction: shared by every factorisation of Gram blocks."""

from __future__ import annotations

__all__ = ["DEPENDENT", "DOUBTFUL", "TIE"]

# Relative pivots, squared, of a Cholesky factorisation of a group's correlation matrix. Below DEPENDENT nothing is
# left but rounding; between the two the Gram block has too few digits left to tell, and the columns are asked.
DEPENDENT = 1e-13
DOUBTFUL = 1e-6

# Pivots this close are a tie, which the earlier column wins: rounding must not decide the order.
TIE = 1e-8
