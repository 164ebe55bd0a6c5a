"""Training errors along the path: the deviance, and the share of misclassified rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from covey.designs import as_design
from covey.report.quality import coded, is_squared, null_error
from covey.report.traces import Frames
from covey.validation import FloatArray, MatrixLike, PerRow

__all__ = ["Along", "along_the_path"]


@dataclass(frozen=True)
class Along:
    """Errors on the training rows, at every frame."""

    deviance: FloatArray  # relative to the deviance of the best constant
    wrong: FloatArray | None  # for classes: the share of misclassified rows

    def words(self, frame: int) -> str:
        """The text for a frame."""
        text = f"deviance {self.deviance[frame]:.0%} of the constant's"
        return text if self.wrong is None else f"{text}, {self.wrong[frame]:.1%} of rows misclassified"


def along_the_path(
    model: BaseEstimator, X: MatrixLike | None, y: PerRow, weight: PerRow, offset: PerRow, frames: Frames
) -> Along | None:
    """The training errors at the frames' times.

    None for squared loss, where the strengths already show the plateaus, and for survival times, where no constant
    gives a deviance to compare with.
    """
    loss, path = model.loss_, model.path_
    if X is None or y is None or is_squared(model) or loss.survival:
        return None
    design, response = as_design(X), coded(model, y)
    q = np.ones(len(response)) if weight is None else np.asarray(weight, dtype=float)
    q = q / q.sum()
    shift = np.zeros((len(q), 1)) if offset is None else np.asarray(offset, dtype=float).reshape(len(q), -1)
    shift = shift if loss.vector else shift[:, 0]
    deviance, wrong = [], []
    for time in frames.times:
        coef, intercept = path.model(path.index(time))
        coef = np.atleast_2d(coef)
        used = np.flatnonzero(coef.any(axis=0))
        eta = np.asarray(design.predict(used, coef[:, used], np.atleast_1d(intercept)))
        eta = (eta if loss.vector else eta[:, 0]) + shift
        deviance.append(float(loss.on(response, q).deviance(eta)))
        if hasattr(model, "classes_"):
            fitted = loss.with_thresholds(response, eta, q) if loss.coupled else loss
            likeliest = fitted.probabilities(eta.reshape(len(q), -1)).argmax(axis=1)
            wrong.append(float(q @ (likeliest != loss.classes(response))))
    share = np.array(deviance) / (null_error(model, y, weight, offset) or 1.0)
    return Along(share, np.array(wrong) if hasattr(model, "classes_") else None)
