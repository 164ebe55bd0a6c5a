"""Tables of all kinds through `covey fit` and `covey predict`: a complete folder, or one line that says why not."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from covey.cli.app import app
from covey.workflow.folder import GROUP_FILES, TERM_FILES

RUNNER = CliRunner()

NAMES = [
    "a", "b_1", "b_2", "=1+1", "-x", "@y", "+z", "'q", "<b>", "ü 名", "a,b", 'say "x"', "", " ", "nan", "1", "x" * 300,
    "a\nb", "\x1b[2J", "y", "prediction", "(intercept)", "[red]", "{0}", "%s", "../up", "a:b", "log:a", "size=3",
]  # fmt: skip
CELLS = [
    "", "NA", "nan", "inf", "-inf", "1e999", "1e308", "1e-320", "=2", "text", "0", "-0.0", "true", "1,5", "2020-01-01",
    "\x00", "'", '"', "1_000", "0x10", " 3 ", "9" * 400, "1+2j",
]  # fmt: skip


def verdict(seed: int) -> str:
    """Empty when all is well; otherwise what is wrong with the table of this seed."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder)
        table, columns = write_table(place, rng)
        options = [str(option) for option in options_of(columns, rng)]
        out = place / "fit"
        command = ["fit", str(table), *options, "--out", str(out)]
        problem = judged(command, out)
        if not problem and out.exists():
            problem = judged(["predict", str(out), str(table), "--out", str(place / "p.csv")], place / "p.csv")
        left = [file.name for file in place.iterdir() if file.name.startswith(".")]
        if left and not problem:
            problem = f"left behind: {left}"
        return f"{problem}\n  {command}" if problem else ""


def judged(command: list[str], out: Path) -> str:
    """What is wrong with a command's answer."""
    result = RUNNER.invoke(app, command, env={"COLUMNS": "200", "NO_COLOR": "1"})
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return f"{type(error).__name__}: {error}\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
    if result.exit_code == 2:
        lines = result.stderr.strip().splitlines()
        if "Usage:" in result.stderr:  # the parser reports bad usage
            return ""
        # one line; or one that ends in a colon, and one per column that cannot be read
        listed = len(lines) > 1 and lines[0].endswith(":") and all(line.startswith("  ") for line in lines[1:])
        if not (len(lines) == 1 or listed) or not lines[0].startswith("error: ") or len(lines[0]) < 20:
            return f"neither one line nor a list of columns: {result.stderr!r}"
        return f"refused, and yet wrote {out.name}" if out.exists() else ""
    if result.exit_code not in (0, 3):
        return f"exit code {result.exit_code}: {result.stderr!r}"
    return incomplete(out)


def incomplete(out: Path) -> str:
    """What is wrong with the files of a fit, or with predictions."""
    if not out.is_dir():
        return "" if out.is_file() and out.stat().st_size else f"no {out.name}"
    if {file.name for file in out.iterdir()} not in (GROUP_FILES, TERM_FILES):
        return f"not all files: {sorted(file.name for file in out.iterdir())}"
    about = json.loads((out / "run.json").read_text())
    wrong = [
        name
        for name, digest in about["files"].items()
        if hashlib.sha256((out / name).read_bytes()).hexdigest() != digest
    ]
    numbers = np.ravel(about["intercept"])
    return f"not as it was written: {wrong}" if wrong else "" if np.isfinite(numbers).all() else "an infinite intercept"


# ---------------------------------------------------------------------- tables


def write_table(place: Path, rng: random.Random) -> tuple[Path, list[str]]:
    """A table with a few odd things in it, and the names of its columns."""
    n, p = rng.choice([12, 25, 40, 40, 60, 60, 60, 60, 3, rng.choice([0, 1])]), rng.choice([1, 3, 6, 6, 12])
    columns = [f"g{j // 3}_{j}" for j in range(p)] + ["y"]
    odd = rng.random
    for _ in range(rng.choice([0, 0, 1, 2])):
        columns[rng.randrange(len(columns))] = rng.choice(NAMES)
    numbers = np.random.default_rng(rng.randrange(2**31))
    X = numbers.standard_normal((n, len(columns))) * 10.0 ** numbers.integers(-3, 4)
    lines: list[list[Any]] = [[f"{value:.6g}" for value in row] for row in X]
    target = rng.choice(["number", "number", "number", "class", "two", "count", "positive", "constant"])
    for i, row in enumerate(lines):
        eta = X[i, 0] / (np.abs(X[:, 0]).max() or 1.0) + 0.3 * numbers.standard_normal()
        row[-1] = {
            "number": f"{eta:.5g}", "class": "abc"[int(3 / (1 + np.exp(-eta))) % 3], "two": str(int(eta > 0)),
            "count": str(numbers.poisson(np.exp(eta))), "positive": f"{np.exp(eta):.5g}", "constant": "7",
        }[target]  # fmt: skip
    if lines and odd() < 0.15:
        j = rng.randrange(len(columns))
        for row in lines:
            row[j] = rng.choice(["u", "v", "w"])
    for _ in range(rng.choice([0, 0, 0, 1, 5]) if lines else 0):
        rng.choice(lines)[rng.randrange(len(columns))] = rng.choice(CELLS)
    if lines and odd() < 0.05:
        rng.choice(lines).append("1")
    separator, end = rng.choice([",", ",", ",", ";", "\t"]), rng.choice(["\n", "\n", "\r\n"])
    texts = [separator.join(quoted(cell, separator) for cell in row) for row in [columns, *lines]]
    content = (end.join(texts) + rng.choice([end, ""])).encode()
    if odd() < 0.05:
        content = b"\xef\xbb\xbf" + content
    if odd() < 0.05 and content:
        a = rng.randrange(len(content))
        content = rng.choice([content[:a], content[:a] + b"\xff\xfe\x00" + content[a:], b""])
    file = place / rng.choice(["t.csv", "t.csv", "t.tsv", "t.txt", "t.parquet", "t.csv.gz"][: 4 if odd() < 0.9 else 6])
    file.write_bytes(content)
    return file, columns


def quoted(cell: Any, separator: str) -> str:
    text = str(cell)
    special = any(mark in text for mark in (separator, '"', "\n", "\r"))
    return '"' + text.replace('"', '""') + '"' if special else text


def options_of(columns: list[str], rng: random.Random) -> list[Any]:
    """Options, most of them sensible."""
    any_column = columns[rng.randrange(len(columns))]
    given = ["--target", columns[-1] if rng.random() < 0.95 else any_column]
    odd: list[list[Any]] = [
        ["--groups", rng.choice(["_", "3", "sep:_", "regex:(g[0-9])", "g0*", "nothing", "0", "regex:(", "99"])],
        ["--groups", "_"], ["--curve", any_column], ["--curve", "g*:4"], ["--curve", "*:2"], ["--linear", any_column],
        ["--levels", any_column],
        ["--pairs", rng.choice(["auto", "none", f"with:{any_column}", f"{any_column}:{columns[0]}", "x"])],
        ["--drop", any_column], ["--weights", any_column],
        ["--family", rng.choice(["gaussian", "huber", "poisson", "gamma", "binomial", "multinomial"])],
        ["--selection", rng.choice(["3", "holdout", "ebic", "bic", "gcv", "discrepancy", "size:1", "size:99", "1"])],
        ["--rule", "predict"], ["--always", any_column], ["--offset", any_column], ["--seed", "3"],
        ["--factors", rng.choice(["0", "1", "99", "-1"])], ["--standardize", rng.choice(["column", "block", "none"])],
        ["--refits", "0"], ["--target", any_column],
    ]  # fmt: skip
    for option in rng.sample(odd, rng.choice([0, 1, 1, 2, 3])):
        given += option
    return given
