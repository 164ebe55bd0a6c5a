"""What to keep in mind when reading a fit: what was found, what it means, and what to do.

Each check is a function of a fit. It returns the name of a text in ``assets/remarks.toml`` with the words that the text
needs, or None if there is nothing to remark.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from covey.estimators.group_views import too_good
from covey.estimators.term_views import as_terms
from covey.evidence.nested_result import MEASURES
from covey.evidence.overlap import Overlap, inner_coherence
from covey.groups.checks import plural
from covey.report.fitted import Fitted
from covey.report.page import asset
from covey.search.agreement import fold_counts, split_warning
from covey.search.chosen import interchangeable, price_of_sparsity
from covey.validation import some

# Canonical correlation from which two groups carry nearly the same information.
VERY_CLOSE = 0.9

# Correlation within a group that deserves a remark if groups were not orthonormalised. The paper requires far less, but
# only an eigenvalue this far from 1 delays a group visibly.
INNER = 0.9

# The most names in one sentence.
MOST_NAMES = 5

# With at least this many groups, a model with more than this share of them is hardly sparse.
MANY, MOST_OF = 8, 0.5

# A model that removes less than this share of the error hardly predicts.
POOR_R2 = 0.05

# Words of the texts that hold no names of groups.
WITHOUT_NAMES = frozenset({"groups", "better", "fewer", "price"})

# A model on all groups that predicts better by this share is worth a remark.
WORTH = 0.02

# Standard errors within which the null model cannot be distinguished from the fitted one.
WEAK = 2.0


@dataclass(frozen=True)
class Remark:
    """One thing to keep in mind."""

    heading: str
    meaning: str  # what was found and what it means
    remedy: str = ""  # what to do; empty if nothing is needed
    serious: bool = False  # whether it can change the conclusions


Found = tuple[str, dict[str, Any]] | None


def remarks(fit: Fitted) -> tuple[Remark, ...]:
    """All remarks on a fitted estimator, serious ones first; without X, or of terms, none on correlated groups."""
    texts, has_terms = tomllib.loads(asset("remarks.toml")), hasattr(fit.model, "expansion_")
    on_data = () if fit.X is None or has_terms else DATA
    on_groups = (*MODEL, *on_data) if fit.selected.size else (nothing, constraints)
    say = as_terms if has_terms else str
    found = []
    for name, words in filter(None, (check(fit) for check in (score, accuracy, *on_groups))):
        text = {"remedy": "", "serious": False, **texts[name]}
        words |= {key: say(words[key]) for key in WITHOUT_NAMES & words.keys()}
        heading, meaning, remedy = (say(text[part]).format(**words) for part in ("heading", "meaning", "remedy"))
        found.append(Remark(heading, meaning, remedy, words.get("serious", text["serious"])))
    return tuple(sorted(found, key=lambda remark: not remark.serious))


def score(fit: Fitted) -> Found:
    """Whether the model hardly predicts."""
    nested = fit.nested
    if nested is not None and nested.measure not in MEASURES:  # not a share of an error
        null = nested.references.get("null")
        if null is None or nested.mean - null.mean > nested.margin:
            return None
        return "hardly_orders", {"nested": nested, "chance": null.mean}
    r2 = nested.mean if nested is not None else None if fit.judged is None else fit.judged.r2
    if r2 is None or r2 >= POOR_R2:
        return None
    where = "held-out rows" if nested is not None else "the rows used to choose it"
    error = "squared error" if fit.model.loss_.quadratic else "deviance"
    return "hardly_predicts", {"where": where, "share": max(r2, 0.0), "error": error}


def perfection(fit: Fitted) -> Found:
    """Whether the model has hardly any error."""
    question = too_good(fit.model)
    return ("too_good", {"question": question}) if question else None


def accuracy(fit: Fitted) -> Found:
    """Whether always saying the commonest class is right as often."""
    scores = None if fit.nested is None else fit.nested.class_scores
    if scores is None or scores.is_flat or scores.gain[0] > scores.gain[1]:
        return None
    return "no_more_accurate", {"commonest": _quoted(scores.commonest), "remark": scores.remark}


def nothing(fit: Fitted) -> Found:
    """No group in the model."""
    if fit.model.always_groups_:
        better = "predicts measurably better than the groups that are always in."
    elif fit.model.loss_.survival:
        better = "orders the events measurably better than chance: every row is given the same risk."
    else:
        same = "probabilities" if hasattr(fit.model, "classes_") else "value"
        better = f"predicts measurably better than the mean: the model gives the same {same} for every row."
    return "nothing_selected", {"better": better}


def evidence(fit: Fitted) -> Found:
    """How certain the selection is: compared with the null model, and across folds."""
    model, n = fit.model, fit.model.n_splits_
    if fit.is_average:
        return None
    if n > 0:  # criteria have no standard errors
        table = model.candidates_
        error = "mse" if "mse" in table else "deviance"
        chosen, empty = table[table["chosen"]].iloc[0], table[table["groups"] == 0]
        if len(empty) and empty[error].iloc[0] - chosen[error] <= WEAK * empty["standard_error"].iloc[0]:
            return "weak_evidence", {}
    counts, folds = fold_counts(model), "folds"
    if fit.nested is not None and not fit.is_dense:
        counts, n, folds = fit.nested.frequencies, fit.nested.n_folds, "outer folds"
    if not counts:
        return None
    fewer = {name: counts.get(name, 0) for name in fit.names if counts.get(name, 0) < n}
    if not fewer:
        return "folds_agree", {"groups": plural(len(fit.names), "group"), "folds": folds, "fold": folds[:-1]}
    return "folds_differ", {
        "folds": folds,
        "fold": folds[:-1],
        "groups": plural(len(fewer), "group"),
        "n": n,
        "counts": _joined([f"{_quoted(name)} in {count}" for name, count in fewer.items()]),
        "serious": min(fewer.values()) <= n / 2,
    }


def split(fit: Fitted) -> Found:
    """Whether the outer folds select different groups."""
    nested = fit.nested
    if nested is None or fit.is_dense or fit.is_average or not fit.names:
        return None
    warning = split_warning(fit.names, nested.frequencies, nested.n_folds, "repetitions")
    which = warning.partition(": ")[2]
    return ("depends_on_the_split", {"n": nested.n_folds, "which": which}) if which else None


def sparsity(fit: Fitted) -> Found:
    """Whether the model is an average, dense, or has most groups."""
    model, n_selected = fit.model, fit.selected.size
    n_groups = len(model.group_norms_) - len(model.always_groups_)
    if fit.is_average:
        return "averaged", {"n": int((model.candidates_["weight"] > 0).sum())}
    if fit.is_dense:
        return "dense", {}
    if n_groups < MANY or n_selected <= MOST_OF * n_groups:
        return None
    remedy = "" if model.n_splits_ else "For fewer groups that predict about as well, use selection=5."
    return "most_selected", {"n": n_selected, "n_groups": n_groups, "fewer": remedy}


def price(fit: Fitted) -> Found:
    """Whether a model on all groups predicts clearly better."""
    if fit.model.price_ is None:
        return None
    gain, standard_error = fit.model.price_
    if gain < WORTH or gain < WEAK * standard_error:
        return None
    return "dense_is_better", {"price": price_of_sparsity(fit.model)}


def constraints(fit: Fitted) -> Found:
    """Whether a constraint keeps a group out of the model that the rows ask for."""
    table = getattr(fit.model, "constraints_", None)
    if table is None:
        return None
    out = table[table["binds"] & ~table["selected"]].sort_values("pressure", ascending=False)
    if not len(out):
        return None
    names = [f"{_quoted(name)} ({text})" for name, text in zip(out["name"], out["constraint"], strict=True)]
    return "kept_out", {"names": _joined(names)}


def rivals(fit: Fitted) -> Found:
    """Whether held-out rows cannot tell selected groups from others."""
    pairs = interchangeable(fit.model)
    if not pairs:
        return None
    return "interchangeable", {"pairs": _listed([f"{a} or {b}" for a, b in pairs])}


def shrinkage(fit: Fitted) -> Found:
    """Whether a ridge shrinks the coefficients, and whether it had to because the estimates are infinite."""
    model = fit.model
    if not model.shrunk_ or fit.is_average or fit.is_dense:
        return None
    if " is infinite " not in model.recipe_:
        return "shrunk", {"unpenalised": model.loss_.unpenalised}
    if hasattr(model, "classes_"):
        return "separated_classes", {}
    return "infinite_hazards" if model.loss_.survival else "infinite_coefficients", {}


def overlap(fit: Fitted) -> Found:
    """Whether selected groups are easily confused with others."""
    pairs = [pair for pair in fit.overlaps.pairs if pair.chance < 1]
    close, n = [pair for pair in pairs if pair.is_close], fit.overlaps.n_rows
    if not pairs:
        return ("too_wide", {"n": n}) if fit.overlaps.pairs else None
    names = [_quoted(name) for name in fit.model.groups_.names]

    def described(pair: Overlap) -> str:
        both = "both" if pair.other in fit.selected else "not"
        return f"{names[pair.group]} with {names[pair.other]} ({pair.correlation:.2f}, {both} selected)"

    if not close:
        return "distinct", {"pair": described(pairs[0]), "chance": pairs[0].chance, "n": n}
    listed = [described(pair) for pair in close[:MOST_NAMES]]
    more = [f"and {len(close) - MOST_NAMES} more"] if len(close) > MOST_NAMES else []
    return "overlapping", {
        "chance": pairs[0].chance,
        "n": n,
        "groups": f"{plural(len(close), 'selected group')} overlap{'s' if len(close) == 1 else ''}",
        "pairs": "; ".join(listed + more),
        "serious": any(pair.correlation >= VERY_CLOSE for pair in close),
    }


def dependence(fit: Fitted) -> Found:
    """Whether columns of a selected group are linearly dependent."""
    names = [fit.model.groups_.names[l] for l in fit.overlaps.dependent]
    return ("dependent", {"names": _listed(names)}) if names else None


def correlation(fit: Fitted) -> Found:
    """Whether columns of a group are strongly correlated, where that matters."""
    if fit.model.standardize == "group":
        return None
    groups = fit.model.groups_
    names = [groups.names[l] for l, value in inner_coherence(fit.X, groups, fit.selected) if value >= INNER]
    return ("correlated", {"names": _listed(names)}) if names else None


# Checks of a model with groups, and those that need the data too.
MODEL: tuple[Callable[[Fitted], Found], ...] = (
    perfection, evidence, split, constraints, price, rivals, sparsity, shrinkage,
)  # fmt: skip
DATA: tuple[Callable[[Fitted], Found], ...] = (overlap, dependence, correlation)


def _quoted(name: object) -> str:
    return f"“{name}”"


def _listed(names: Iterable[object]) -> str:
    """The first few names, for a sentence."""
    return _joined([_quoted(name) for name in names])


def _joined(parts: list[str]) -> str:
    """The first few parts, for a sentence."""
    if len(parts) > MOST_NAMES:
        return some(parts, MOST_NAMES)
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
