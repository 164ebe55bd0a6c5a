"""grpreg, glinternet and mgcv themselves, through R: each is one script on some tables, timed by R's own clock."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .problem import CannotRunError, Fit, Problem
from .rscript import run_r
from .tables import as_text, is_text, variables_of, without_dates

GRPREG = """
suppressMessages(library(grpreg))
X <- as.matrix(read.csv("X.csv")); rows <- read.csv("rows.csv"); group <- read.csv("group.csv")$group
start <- proc.time()
model <- cv.grpreg(X, rows$y, group, penalty = "{penalty}", family = "{family}", fold = rows$fold)
seconds <- sum((proc.time() - start)[1:2])
writeLines(format(c(seconds, coef(model)), digits = 15), "out.txt")
"""


def grpreg(problem: Problem, penalty: str) -> Fit:
    """`cv.grpreg` with everyone's folds."""
    if problem.family.name not in ("gaussian", "binomial", "poisson"):
        raise CannotRunError("only for gaussian, binomial, poisson responses")
    tables = {
        "X": pd.DataFrame(problem.X),
        "rows": pd.DataFrame({"y": problem.y, "fold": problem.fold_of + 1}),
        "group": pd.DataFrame({"group": problem.labels + 1}),
    }
    found = run_r(GRPREG.format(penalty=penalty, family=problem.family.name), tables)
    return problem.linear(found[2:, None], found[1], seconds=float(found[0]))


GLINTERNET = """
suppressMessages(library(glinternet))
fit <- as.matrix(read.csv("fit.csv")); fresh <- as.matrix(read.csv("fresh.csv")); y <- read.csv("y.csv")$y
levels <- read.csv("levels.csv")$levels
set.seed(0)
start <- proc.time()
model <- glinternet.cv(fit, y, levels, nFolds = 5, family = "{family}")
seconds <- sum((proc.time() - start)[1:2])
active <- model$activeSet[[1]]
number <- which(levels == 1); category <- which(levels > 1)
alone <- c(number[active$cont], category[active$cat])
pairs <- rbind(
  if (!is.null(active$contcont)) cbind(number[active$contcont[, 1]], number[active$contcont[, 2]]),
  if (!is.null(active$catcat)) cbind(category[active$catcat[, 1]], category[active$catcat[, 2]]),
  if (!is.null(active$catcont)) cbind(category[active$catcont[, 1]], number[active$catcont[, 2]]))
count <- if (is.null(pairs)) 0 else nrow(pairs)
predicted <- predict(model, fresh, type = "response")
writeLines(format(c(seconds, length(alone), alone, count, t(pairs), predicted), digits = 12), "out.txt")
"""


def run_glinternet(
    values: np.ndarray, fresh: np.ndarray, y: np.ndarray, levels: np.ndarray, family: str = "gaussian"
) -> tuple[np.ndarray, list[int], list[tuple[int, int]], float]:
    """Means of the fresh rows, variables alone, pairs, and seconds.

    Categories are coded 0, 1, ... and have their number of levels; numbers have one.
    """
    tables = {
        "fit": pd.DataFrame(values),
        "fresh": pd.DataFrame(fresh),
        "y": pd.DataFrame({"y": y}),
        "levels": pd.DataFrame({"levels": levels}),
    }
    found = run_r(GLINTERNET.format(family=family), tables, limit=900)
    seconds, rest = float(found[0]), found[1:]
    alone, rest = rest[1 : 1 + int(rest[0])].astype(int) - 1, rest[1 + int(rest[0]) :]
    count = int(rest[0])
    pairs = np.sort(rest[1 : 1 + 2 * count].astype(int).reshape(-1, 2) - 1, axis=1)
    return rest[1 + 2 * count :], alone.tolist(), [(int(i), int(j)) for i, j in pairs], seconds


def glinternet(problem: Problem) -> Fit:
    """`glinternet.cv` with five folds of its own, on the variables of a table; missing numbers are medians."""
    if problem.table is None:
        raise CannotRunError("takes variables, not groups of columns")
    X, X_test = map(without_dates, problem.table)
    fit, fresh, levels = pd.DataFrame(), pd.DataFrame(), []
    for name in X:
        if is_text(X[name]):
            known = as_text(X[name]).value_counts().index
            codes = {level: code for code, level in enumerate(known)}
            fit[name] = as_text(X[name]).map(codes)
            fresh[name] = as_text(X_test[name]).map(codes).fillna(0).astype(int)  # unseen: the level of most rows
            levels.append(len(known))
        else:
            middle = X[name].median()
            fit[name], fresh[name] = X[name].fillna(middle), X_test[name].fillna(middle)
            levels.append(1)
    mean, alone, pairs, seconds = run_glinternet(
        fit.to_numpy(dtype=float), fresh.to_numpy(dtype=float), problem.y, np.array(levels), problem.family.name
    )
    groups = np.unique(variables_of(problem.table[0])[[*alone, *(j for pair in pairs for j in pair)]])
    return Fit(mean[:, None], groups, {"seconds": seconds, "terms": len(alone) + len(pairs)})


MOST_GAM_TERMS = 25
GAM = """
suppressMessages(library(mgcv))
fit <- read.csv("fit.csv", stringsAsFactors = TRUE)
test <- read.csv("test.csv")
for (name in names(test)) if (is.factor(fit[[name]])) test[[name]] <- factor(test[[name]], levels(fit[[name]]))
start <- proc.time()
model <- {call} y ~ {terms}, data = fit, family = {family}, select = TRUE)
seconds <- sum((proc.time() - start)[1:2])
edf <- unlist(lapply(model$smooth, function(s) sum(model$edf[s$first.para:s$last.para])))
smooth <- unlist(lapply(model$smooth, function(s) s$term))[edf > 0.1]
kept <- c(attr(model$pterms, "term.labels"), smooth)
found <- c(seconds, length(kept), as.integer(substring(kept, 2)), predict(model, test, type = "response"))
writeLines(format(found, digits = 15), "out.txt")
"""


def mgcv(problem: Problem) -> Fit:
    """`gam(select=TRUE, method="REML")`: smooths of numbers, factors, many levels as random effects.

    Tables of more than 25 terms are given to mgcv's `bam`, its version for large data: `gam` takes minutes there.
    """
    if problem.table is None:
        raise CannotRunError("takes variables, not groups of columns")
    fit, test, terms = gam_tables(*map(without_dates, problem.table))
    family = "binomial()" if problem.family.classes else "gaussian()"
    wide = len(terms) > MOST_GAM_TERMS
    call = 'bam(method = "fREML", discrete = TRUE,' if wide else 'gam(method = "REML",'
    script = GAM.format(terms=" + ".join(terms) or "1", family=family, call=call)
    found = run_r(script, {"fit": fit.assign(y=problem.y), "test": test})
    count = int(found[1])
    groups = np.unique(variables_of(problem.table[0])[found[2 : 2 + count].astype(int)])
    return Fit(found[2 + count :, None], groups, {"seconds": float(found[0]), "terms": count})


def gam_tables(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Both tables with R's names and no missing values, and the terms of the formula."""
    fit, test, terms = pd.DataFrame(index=X.index), pd.DataFrame(index=X_test.index), []
    sizes = []
    for i, name in enumerate(X):
        x, x_test, at = X[name], X_test[name], f"v{i}"
        if is_text(x):
            x, x_test = as_text(x), as_text(x_test)
            counts = x.value_counts()
            often = counts.index[counts >= 5]
            x, x_test = x.where(x.isin(often), "other"), x_test.where(x_test.isin(often), "other")
            if "other" not in set(x):
                x_test = x_test.where(x_test != "other", counts.index[0])
            levels = sorted(x.unique())
            if len(levels) > 1:
                code = {level: f"l{j}" for j, level in enumerate(levels)}
                fit[at], test[at] = x.map(code), x_test.map(code)
                terms.append(f's({at}, bs="re")' if len(levels) > 10 else at)
                sizes.append(len(levels))
            continue
        if x.isna().any():
            flag = f"m{i}"
            fit[flag], test[flag] = x.isna().astype(float), x_test.isna().astype(float)
            terms.append(flag)
        middle = x.median()
        fit[at], test[at] = x.fillna(middle), x_test.fillna(middle)
        distinct = fit[at].nunique()
        if distinct > 8:
            terms.append(f"s({at}, k={{k}})")
        elif distinct > 1:
            terms.append(at)
    smooth = sum("{k}" in term for term in terms)
    room = (0.8 * len(X) - sum(sizes)) / max(smooth, 1)
    k = 8 if room > 8 else max(3, int(room))
    return fit, test, [term.replace("{k}", str(k)) for term in terms]
