"""Tables of variables as terms: lines, curves, levels, seasons, and pairs of them."""

from covey.terms.encoding import Encoding
from covey.terms.expansion import Expansion, expand
from covey.terms.kinds import Curve, Drop, Levels, Linear, Term
from covey.terms.pairs import Pairs, PairsLike
from covey.terms.requirements import Constraints
from covey.terms.terms import Terms, TermsLike

__all__ = [
    "Constraints", "Curve", "Drop", "Encoding", "Expansion", "Levels", "Linear", "Pairs", "PairsLike", "Term", "Terms",
    "TermsLike", "expand",
]  # fmt: skip
