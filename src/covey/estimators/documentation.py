"""What the docstrings of the estimators say in the same words: a line such as ``$groups $terms`` stands for these."""

from __future__ import annotations

import re
from inspect import isfunction
from textwrap import indent
from typing import TypeVar

Class = TypeVar("Class", bound=type)

SHARED = """
groups : None, int, labels, lists, dict, callable, str or Groups
    Which columns belong together: None for every column on its own (a sparse linear model), one size for all
    groups, one label per column, lists of columns (positions, or names of a DataFrame), a dictionary from group
    names to columns, a function of the column names such as `TermGroups`, or a separator: ``"_"`` groups columns by
    the part of their name before the first underscore. For groups of different sizes use ``Groups.from_sizes``.
terms : None, "auto", dict or Terms
    For a table of variables instead of a matrix of columns: numbers become lines and curves, categories levels,
    dates trends and seasons, and every term is a group. ``"auto"`` decides by the values of each variable, a
    dictionary such as ``{"age": "linear", "site": "levels"}`` by name or pattern, and `covey.Terms` takes pairs of
    variables too. `predict` and `score` then take tables with the same variables. Not together with `groups`.
within : {None, "columns"}
    ``"columns"`` selects columns within `groups`: beside groups, single columns are candidates, and columns of
    selected groups can be dropped. Groups are kept as they are unless the held-out rows prefer columns.
constraints : dict, optional
    What is known beforehand, by the name of a variable, group or column, or a pattern such as ``"media*"``: a sign
    (``">=0"``, ``"<=0"``), bounds (``(0, 2)``), ``"increasing"``, ``"decreasing"``, ``"convex"`` or ``"concave"``, or
    a list of some of these. Every model keeps them. With `terms`, signs and bounds are those of the slope of a number,
    everywhere, or of the trend of a date per day; with `groups`, those of every coefficient of a group, and an
    increasing group has coefficients that do not fall from one column to the next. Models on all groups are no
    candidates then, and variables with constraints are in no pairs.
always : iterable
    Names of groups (or of columns that are a group by themselves) that are in every model; they are never selected,
    shrunk or dropped. Linearly dependent columns among them count by their rank.
selection : int, splitter, "holdout", "ebic", "bic", "gcv", Size, or an object of `covey.selection`
    How the model is chosen: by a number of folds or anything that scikit-learn accepts as ``cv``; on rows held out once
    (`covey.selection.HoldOut`, also with your own validation set); by an information criterion; or by the number of
    groups (``covey.selection.Size(k)``).
rule : {"select", "predict"}
    What the held-out rows decide. ``"select"``: the few groups that matter, by the simplest sparse model that the
    held-out rows cannot tell from the best one (1.5 standard errors) and that costs at most a tenth of its deviance.
    ``"predict"``: the best prediction, the mean of all candidates weighted by their held-out deviance; it usually has
    all groups. Rows are dealt to folds again while it is open which model is chosen (`covey.selection.Folds` sets how
    often at most).
recipes : iterable of Recipe
    Further candidates, for instance of your own: see "How to add a recipe" in the documentation.
factors : "auto" or int
    The number of common factors of the columns to include in the model while the order of the groups is determined,
    so that groups do not wake up because of variation that all columns share. ``"auto"`` counts the factors that
    stand out, usually none. The final model contains no factors.
group_weights : "noise", "sqrt", None or array of shape (n_groups,)
    Divisors of the groups' gradients. ``"noise"`` is the level that pure noise would reach in a group of its size,
    so that groups of all sizes are about equally likely to wake up by chance; ``"sqrt"`` is the square root of the
    size, which favours small groups; None divides by nothing, which favours large ones. A Series with the groups'
    names in its index may have any order.
standardize : {"group", "column", "block", False}
    How columns are prepared for the path: orthonormalised within each group, scaled to unit variance one by one,
    scaled group by group, or left as they are. Coefficients always refer to the columns as given.
random_state : int or None
    Seed for choosing held-out rows and assigning rows to folds; None means 0, so that fits are reproducible.
verbose : int
    1 shows the progress of fits that take longer than a second, and prints a line about the chosen model.
always_groups_ : list
    Names of the groups that are in every model.
selected_groups_ : list
    Names of the groups with non-zero coefficients, strongest first (`group_strengths_`).
group_strengths_ : ndarray of shape (n_groups,)
    How far each group moves the prediction: with ``standardize="group"``, the standard deviation of its
    contribution.
group_norms_ : ndarray of shape (n_groups,)
    Norm of each group's coefficients, over all responses or classes.
recipe_ : str
    How the model was fitted, in words.
shrunk_ : bool
    False if the model is least squares or maximum likelihood on the selected groups; True if it is shrunk by a ridge or
    is a mean of models.
candidates_ : DataFrame
    All candidates with their cross-validated errors; the chosen one is marked. Candidates that were left out after
    the first deal of the folds have the distance from the best that they had then.
rivals_ : DataFrame or None
    The sets of groups that the held-out rows cannot tell from the best, and those that folds select, the chosen one
    first: their ``groups``, the chosen groups that they are ``without``, what they have ``instead``, the error of
    their best model and its standard error (NaN if only folds select them), and in how many ``folds`` they are
    selected. None if the model is a mean of models or no rows were held out.
price_ : (float, float) or None
    What sparsity costs: by what share of its error the best model on all groups predicts better on held-out rows,
    and the standard error of that share; None if there was no such model, or it was chosen.
fold_frequencies_ : ndarray of shape (n_groups,) or None
    In how many of the `n_splits_` folds each group is selected if the model is chosen without the rows held out
    there; None if there were no folds, or models on all groups were chosen.
held_out_ : HeldOut or None
    The model without the rows of each fold, and how far these rows are from what it predicts: what
    ``predict(X, interval=0.9)`` is made of. None if no rows were held out.
n_splits_, n_deals_ : int
    The number of folds in all deals, and how often the rows were dealt to folds.
predictor_range_ : ndarray of shape (2, n_outputs) or None
    The range of the linear predictor in `fit`, for losses that take its exponential. Predictions for rows that
    leave it by more than half its width are bounded there, with a warning.
path_ : Path
    The path on all rows; it ends with the chosen model.
expansion_ : Expansion
    Only with `terms`: how a table becomes the columns of the model. Its `terms` are the groups, and the remarks of
    its `encoding` say which variables were left out, and how missing values count.
constraints_ : DataFrame
    Only with `constraints`: the ``name`` and the ``constraint``, whether a term or group of it is ``selected``,
    whether it ``binds`` (it holds the model back, or keeps out what would be in), and the ``pressure`` of the rows
    against it, in standard errors.
n_features_in_ : int
    The number of columns of X; with `terms`, these are its variables.
feature_names_in_ : ndarray of str
    The names of these columns, if X has any.
sample_weight : array-like of shape (n_rows,), optional
    A weight of two is the same as repeating the row.
split_groups : array-like of shape (n_rows,), optional
    Rows with the same label stay in the same fold.
strata : array-like of shape (n_rows,), optional
    The stratum of each row; required if the model was fitted with strata.
return_array : bool
    Return an array of the values at `event_times_` instead of functions.
"""

ENTRIES = {re.split(r"[ ,]", entry, maxsplit=1)[0]: entry for entry in re.split(r"\n(?=\S)", SHARED.strip())}


def documented(cls: Class) -> Class:
    """Write the shared entries into the docstrings of a class and of its methods."""
    for described in (cls, *filter(isfunction, vars(cls).values())):
        if described.__doc__:  # python -OO has none
            described.__doc__ = re.sub(r"^( *)(\$.*)$", _entries, described.__doc__, flags=re.MULTILINE)
    return cls


def _entries(line: re.Match[str]) -> str:
    return indent("\n".join(ENTRIES[name.removeprefix("$")] for name in line[2].split()), line[1])
