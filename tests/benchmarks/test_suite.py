"""The suite runs a method and a problem that join it, and says why others cannot run."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # after tests/, which has modules of the same names

import run_suite
from suite.families import FAMILIES
from suite.measures import Results, stability
from suite.methods import METHODS, covey, ebm, null, oracle
from suite.page import tables, write
from suite.problem import CannotRunError, Fit
from suite.problems import PROBLEMS
from suite.store import Store

ROOT = Path(__file__).parents[2]


def example():
    """METHODS and PROBLEMS as the page writes them."""
    text = (ROOT / "benchmarks" / "suite" / "page.md").read_text()
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S))


def joined():
    names = {}
    exec(example(), names)
    return names["METHODS"], names["PROBLEMS"]


def test_a_method_and_a_problem_join(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(example())
    mine = "scikit-learn's lasso"
    arguments = [
        "--join", tmp_path / "mine.py", "--only", "--seeds", "0", "1", "--keep", tmp_path / "kept.jsonl",
        "--methods", mine, "covey", "null", "oracle", "EBM",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["run_suite.py", *map(str, arguments)])
    run_suite.main()
    printed = capsys.readouterr().out
    assert "| two groups |" in printed
    assert "EBM: takes variables, not groups of columns (two groups)." in printed
    store = Store(tmp_path / "kept.jsonl")
    assert set(store.rows) == {(m, "two groups", s) for m in (mine, "covey", "null", "oracle", "EBM") for s in (0, 1)}
    before = (tmp_path / "kept.jsonl").read_text()
    run_suite.main()
    assert (tmp_path / "kept.jsonl").read_text() == before  # nothing is run twice
    row = store.rows["covey", "two groups", 0]
    assert row["selected"] == [0, 1]
    assert (row["false"], row["missed"]) == (0, 0)
    results = Results(store)
    assert results.to_null.loc["null", "two groups"] == 1
    assert results.to_null.loc["oracle", "two groups"] < 0.2
    assert results.to_best.drop(index=["null", "oracle"]).min().min() == 1
    assert results.stability.loc["covey", "two groups"] == 1


def test_the_page_is_written_from_what_is_kept(tmp_path):
    methods, problems = joined()
    store = Store(tmp_path / "kept.jsonl")
    run_suite.run({**methods, "covey": covey, "null": null, "oracle": oracle}, problems, [0, 1], store)
    (tmp_path / "images").mkdir()
    write(Store(tmp_path / "kept.jsonl"), tmp_path)
    page = (tmp_path / "suite.md").read_text()
    assert "{{" not in page
    assert "| two groups |" in page
    for name in ("suite_errors.png", "suite_measures.png"):
        assert (tmp_path / "images" / name).stat().st_size > 1000


def test_a_failure_is_a_result(tmp_path):
    def broken(problem):
        raise ZeroDivisionError("no rows left")

    def refuses(problem):
        raise CannotRunError("only on Tuesdays")

    def infinite(problem):
        return Fit(np.full((len(problem.X_test), 1), np.inf))

    store = Store()
    methods = {"broken": broken, "refuses": refuses, "infinite": infinite, "null": null, "covey": covey}
    run_suite.run(methods, joined()[1], [0], store)
    reasons = {method: store.rows[method, "two groups", 0].get("reason") for method in methods}
    assert reasons == {
        "broken": "ZeroDivisionError: no rows left", "refuses": "only on Tuesdays",
        "infinite": "predictions are not finite", "null": None, "covey": None,
    }  # fmt: skip
    assert "- refuses: only on Tuesdays (two groups)." in tables(store)


def test_a_problem_that_is_not_here_is_left_out():
    def missing(seed):
        raise CannotRunError("it is on another machine")

    said = []
    store = Store()
    run_suite.run({"null": null}, {"missing": missing, **joined()[1]}, [0], store, said.append)
    assert said[0] == "missing is left out: it is on another machine."
    assert set(store.rows) == {("null", "two groups", 0)}


@pytest.mark.parametrize("name", ["few strong groups", "two classes", "counts", "survival times", "curves and pairs"])
def test_problems_are_the_same_for_everyone(name):
    one, same, other = PROBLEMS[name](0), PROBLEMS[name](0), PROBLEMS[name](1)
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.fold_of, same.fold_of)
    np.testing.assert_array_equal(one.active, other.active)  # a seed draws rows, not groups
    assert not np.array_equal(one.X, other.X)
    assert one.error(null(one).mean) == same.error(null(same).mean)
    assert set(one.labels) == set(range(one.starts.size))


def test_the_null_model_is_the_worst_that_counts_and_the_oracle_better():
    for name in ("few strong groups", "counts", "two classes"):
        problem = PROBLEMS[name](0)
        assert problem.error(oracle(problem).mean) < problem.error(null(problem).mean)


def test_families_score_the_truth_best():
    rng = np.random.default_rng(0)
    for name in ("gaussian", "binomial", "poisson"):
        family = FAMILIES[name]
        truth = family.mean(rng.standard_normal((50, 1)))
        assert family.excess(truth, truth) == pytest.approx(0, abs=1e-12)
        assert family.excess(truth, family.mean(rng.standard_normal((50, 1)))) > 0


def test_stability_by_hand():
    assert stability([[0, 1], [0, 1]], 4) == 1
    assert np.isnan(stability([[], []], 4))
    # two of four groups, disjoint: no more alike than the worst
    assert stability([[0, 1], [2, 3]], 4) == pytest.approx(-1)


def test_methods_of_tables_say_why_not():
    problem = joined()[1]["two groups"](0)
    for method in (ebm, METHODS["mgcv"], METHODS["glinternet"]):
        with pytest.raises(CannotRunError, match="takes variables, not groups of columns"):
            method(problem)


def test_the_committed_results_are_of_this_suite():
    """covey and the null model have a result for every problem and seed, and nothing is of another suite."""
    rows = [json.loads(line) for line in (ROOT / "benchmarks" / "results" / "suite.jsonl").read_text().splitlines()]
    found = {(row["method"], row["problem"], row["seed"]) for row in rows}
    assert len(found) == len(rows)
    assert found <= {(m, p, s) for m in METHODS for p in PROBLEMS for s in run_suite.SEEDS}
    assert {(m, p, s) for m in ("covey", "covey predict", "null") for p in PROBLEMS for s in run_suite.SEEDS} <= found
