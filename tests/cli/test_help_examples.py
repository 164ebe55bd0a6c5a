"""Every example of a help page runs, on a table with the columns that it names."""

import re
import shlex
import shutil

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from cli.running import covey, done
from covey.cli.app import COMMANDS, app

# `covey demo` and `covey reproduce` take no table, and have tests of their own.
ELSEWHERE = ("demo", "reproduce")


def examples():
    """The lines of all help pages that begin with the name of the command."""
    import typer

    group = typer.main.get_command(app)
    pages = [group.help, *(group.get_command(None, name).help or "" for name in COMMANDS)]
    lines = [line.strip() for page in pages for line in page.splitlines()]
    found = dict.fromkeys(line for line in lines if re.match(r"covey [a-z]+( |$)", line))
    return [line for line in found if line.split()[1] not in ELSEWHERE]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with the columns of the examples, and two models, of numbers and of survival times."""
    folder, rng, n = tmp_path_factory.mktemp("examples"), np.random.default_rng(0), 60
    numbers = pd.DataFrame(rng.standard_normal((n, 6)), columns=[f"g{i}_{j}" for i in range(3) for j in range(2)])
    y = numbers["g0_1"] + 0.1 * rng.standard_normal(n)
    age, code = rng.integers(20, 80, n), rng.integers(1, 3, n)
    people = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)], "age": age, "sex": rng.choice(["f", "m"], n), "site": code,
            "treatment": rng.choice(["old", "new"], n), "diagnosis": np.where(age > 50, "ill", "well"),
            "y": y + age / 20,
        }
    )  # fmt: skip
    trial = numbers[["g0_0", "g0_1"]].assign(
        age=age, site=code, months=3 * np.exp(-y), dead=rng.integers(0, 2, n), patient=1
    )
    tables = {
        "table.csv": numbers.assign(y=y),
        "genes.csv": numbers.assign(TRIM32=y, y=y + rng.standard_normal(n)),
        "bardet.csv": numbers.assign(TRIM32=y),
        "patients.csv": people,
        "trial.csv": trial,
        "claims.csv": pd.DataFrame({"age": age, "years": rng.uniform(0.5, 2, n), "n": rng.poisson(age / 20)}).assign(
            cost=lambda claims: claims["n"] * rng.gamma(2, 100, n)
        ),
        "rents.csv": pd.DataFrame({"size": age, "rent": age * rng.uniform(8, 15, n)}),
        "exams.csv": pd.DataFrame(
            {"hours": age, "grade": np.array(["poor", "fair", "good"])[np.digitize(age, [40, 60])]}
        ),
    }
    for name, frame in tables.items():
        frame.to_csv(folder / name, index=False)
    (folder / "parts").mkdir()
    people.to_parquet(folder / "parts" / "one.parquet")
    assert (
        covey("fit", folder / "trial.csv", "--time", "months", "--event", "dead", "-o", folder / "times").exit_code == 0
    )
    done("fit", folder / "patients.csv", "-t", "y", "-o", folder / "numbers")
    return folder


@pytest.mark.parametrize("example", examples())
def test_an_example(folder, example, monkeypatch, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if " predict " in example:
        model = "times" if re.search("--at|months", example) else "numbers"
        shutil.copytree(folder / model, "fit")
        source = pd.read_csv("trial.csv" if model == "times" else "patients.csv")
        source.to_csv("new.csv", index=False)
        source.to_csv("test.csv", index=False)
        source.to_parquet("new.parquet")
    arguments = shlex.split(example.partition(" > ")[0])[1:]
    if arguments[0] == "stability" and "knockoffs" not in arguments:
        arguments += ["--pairs", "5"]  # instead of 50
    with parallel_config(backend="sequential"):
        done(*arguments)


def test_there_are_examples_of_every_command():
    assert {line.split()[1] for line in examples()} == set(COMMANDS) - {*ELSEWHERE, "autoencoder"}
