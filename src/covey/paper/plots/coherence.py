"""CoherenceDisplay: cross-group coherence as a heat map or a profile, with the worst pairs named."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from covey.paper.theory import Bounds, Coherence, coherence, coherence_matrix
from covey.plots.style import GREY, PALETTE, AxesLike, make_axes, quiet
from covey.validation import FloatArray, one_of

# The most groups for which a heat map is readable; beyond it the profile is drawn.
MAX_HEAT_MAP = 150


class CoherenceDisplay:
    """The coherence of a design, by group: a heat map of the `matrix` that `coherence_matrix` returns, or a profile.

    With `bounds`, the theorem's limits are drawn into the profile.

    >>> X = np.random.default_rng(0).standard_normal((60, 40))
    >>> display = CoherenceDisplay.from_design(X, 4)
    >>> len(display.axes_), display.kind
    (2, 'heat map')
    """

    def __init__(self, coherence: Coherence, matrix: FloatArray | None = None, bounds: Bounds | None = None) -> None:
        self.coherence, self.matrix, self.bounds = coherence, matrix, bounds

    @classmethod
    def from_design(
        cls, X: object, groups: object = None, *, kind: str = "auto", bounds: Bounds | None = None, ax: AxesLike = None
    ) -> CoherenceDisplay:
        """Compute and draw at once; `kind` is "heat map", "profile" or "auto" (a heat map up to 150 groups)."""
        one_of(kind, ("auto", "heat map", "profile"), "kind")
        found = coherence(X, groups)
        heat = kind == "heat map" or (kind == "auto" and found.groups.n_groups <= MAX_HEAT_MAP)
        return cls(found, coherence_matrix(X, groups) if heat else None, bounds).plot(ax=ax)

    @property
    def kind(self) -> str:
        """What `plot` draws next to the list of worst pairs."""
        return "profile" if self.matrix is None else "heat map"

    def plot(self, *, ax: AxesLike = None) -> CoherenceDisplay:
        """Draw two panels: the heat map or the profile, and the worst pairs by name."""
        self.figure_, self.axes_ = make_axes(ax, 2, width=5.0, height=3.9)
        if self.matrix is None:
            self._profile(self.axes_[0])
        else:
            self._heat_map(self.axes_[0])
        self._worst(self.axes_[1])
        return self

    def _heat_map(self, ax: Axes) -> None:
        assert self.matrix is not None
        image = ax.imshow(self.matrix, cmap="magma_r", vmin=0, interpolation="nearest")
        self.figure_.colorbar(image, ax=ax, label="spectral norm", shrink=0.85)
        names = self.coherence.groups.names
        if len(names) <= 25:
            ax.set_xticks(range(len(names)), [str(name) for name in names], rotation=90, fontsize=7)
            ax.set_yticks(range(len(names)), [str(name) for name in names], fontsize=7)
        quiet(ax, title="between groups; diagonal: within", xlabel="group", ylabel="group")

    def _profile(self, ax: Axes) -> None:
        result = self.coherence
        position = np.arange(1, result.groups.n_groups + 1)
        for values, colour, label in (
            (result.outer, PALETTE[0], "worst cross norm"),
            (result.inner, PALETTE[1], "deviation within"),
        ):
            ax.plot(position, np.sort(values)[::-1], color=colour, lw=1.5, label=label)
        if self.bounds is not None:
            for limit, colour in ((self.bounds.delta_out(1), PALETTE[0]), (self.bounds.delta_in(1), PALETTE[1])):
                ax.axhline(limit, color=colour, lw=1, ls="--")
            ax.plot([], [], color=GREY, ls="--", lw=1, label="theorem's limits")
            ax.set_yscale("log")
        ax.legend(frameon=False, fontsize=8)
        quiet(ax, title="profile", xlabel="groups, most coherent first", ylabel="spectral norm")

    def _worst(self, ax: Axes) -> None:
        pairs = self.coherence.worst_pairs(8)
        if not pairs:
            ax.axis("off")
            ax.text(0.5, 0.5, "a single group", ha="center", va="center")
            return
        labels = [f"{a} – {b}" for a, b, _ in pairs]
        values = [value for _, _, value in pairs]
        ax.barh(range(len(pairs)), values, color=PALETTE[0])
        ax.set_yticks(range(len(pairs)), labels, fontsize=8)
        ax.invert_yaxis()
        ax.set_xlim(0, 1.18 * max(values) if max(values) > 0 else 1)
        for k, value in enumerate(values):
            ax.text(value, k, f" {value:.3g}", va="center", fontsize=8)
        title = f"worst pairs (delta_out {self.coherence.delta_out:.3g}, delta_in {self.coherence.delta_in:.3g})"
        quiet(ax, title=title, xlabel="norm(X_l'X_m/n)")
