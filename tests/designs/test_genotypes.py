"""PLINK files: what is read, what is left out, and what is refused; `test_contract` compares products and fits."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import covey
from bed_files import write_bed
from covey import Groups, GroupSparseRegressor
from covey.designs import Models
from covey.search.table import Table


def genotypes(n, p, seed=0, missing=0.05):
    rng = np.random.default_rng(seed)
    G = rng.binomial(2, rng.uniform(0.2, 0.8, p), (n, p)).astype(float)
    G[rng.random((n, p)) < missing] = np.nan
    return G


def filled(G, means=None):
    """Missing genotypes as means."""
    return np.where(np.isnan(G), np.nanmean(G, axis=0) if means is None else means, G)


@pytest.fixture
def path(tmp_path):
    return write_bed(tmp_path / "x.bed", genotypes(10, 30))


def decoded(X):
    return X.take(np.arange(X.shape[1]))


@pytest.mark.parametrize("n", [5, 6, 7, 8, 129, 4099])
@pytest.mark.parametrize("in_memory", [False, True])
def test_counts_of_a1_and_means_for_missing_ones(n, in_memory, tmp_path):
    G = genotypes(n, 70, missing=0.1)
    G[:2, :] = [[0.0], [2.0]]  # no column is constant
    X = covey.open(write_bed(tmp_path / "x.bed", G), in_memory=in_memory)
    expected = filled(G)
    np.testing.assert_allclose(decoded(X), expected, rtol=1e-15)
    R = np.random.default_rng(1).standard_normal((3, n))
    np.testing.assert_allclose(X.correlate(R), R @ expected, atol=1e-10)
    np.testing.assert_allclose(X.positions["frequency"], expected.mean(axis=0) / 2)
    np.testing.assert_array_equal(X.largest(), 2.0)
    assert list(X.samples) == [f"s{i}" for i in range(n)]
    assert X.names[:2] == ["x0", "x1"]


@pytest.mark.parametrize("n", [5, 8, 131])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_copy_on_a_device_has_the_same_columns(n, dtype, tmp_path):
    pytest.importorskip("torch")
    G = genotypes(n, 70, missing=0.1)
    G[:2, :] = [[0.0], [2.0]]
    first = covey.open(write_bed(tmp_path / "x.bed", G), dtype=dtype)
    other = write_bed(tmp_path / "y.bed", 2 - G, alleles=("C", "A"))
    table = pd.DataFrame({"age": np.arange(n) / n}, index=first.samples)
    swapped = covey.open(other, samples=list(first.samples[::-1]), like=first, dtype=dtype)
    R = np.random.default_rng(1).standard_normal((3, n))
    for X in (first, first.beside(table), swapped):
        copy = X.to("cpu")
        np.testing.assert_allclose(decoded(copy), decoded(X), rtol=1e-15)
        np.testing.assert_allclose(copy.correlate(R), X.correlate(R), atol=1e-4 if dtype == "float32" else 1e-10)
        np.testing.assert_allclose(copy.largest(), X.largest())
        assert list(copy.columns) == list(X.columns)
        assert copy.take(np.arange(0)).shape == (n, 0)


def test_a_fit_on_a_device_is_the_fit_on_the_file(tmp_path):
    pytest.importorskip("torch")
    G, rng = genotypes(150, 300), np.random.default_rng(3)
    X = covey.open(write_bed(tmp_path / "x.bed", G))
    X = X.beside(pd.DataFrame({"age": rng.standard_normal(150)}, index=X.samples))
    y = filled(G)[:, :4].sum(axis=1) + rng.standard_normal(150)
    one, two = (GroupSparseRegressor(always=["age"]).fit(Z, y) for Z in (X, X.to("cpu")))
    assert one.selected_groups_ == two.selected_groups_
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-10)
    np.testing.assert_allclose(two.predict(X.to("cpu")), one.predict(X), atol=1e-10)
    with pytest.raises(ValueError, match="GB of genotypes cannot be put on device 'gpu'"):
        X.to("gpu")


def test_files_are_joined_in_the_order_of_chromosomes(tmp_path):
    G = genotypes(50, 40)
    parts = {"chr10": (0, 10), "chr2": (10, 25), "chrX": (25, 30), "chr1": (30, 40)}
    for name, (a, b) in parts.items():
        names = [f"{name}:{j}" for j in range(a, b)]
        number = "23" if name == "chrX" else name
        write_bed(tmp_path / f"{name}.bed", G[:, a:b], chromosomes=[number] * (b - a), names=names)
    X = covey.open(str(tmp_path / "chr*.bed"))
    order = [*range(30, 40), *range(10, 25), *range(10), *range(25, 30)]
    np.testing.assert_allclose(decoded(X), filled(G)[:, order])
    assert X.positions["chromosome"].tolist() == ["1"] * 10 + ["2"] * 15 + ["10"] * 10 + ["X"] * 5
    scattered = np.array([33, 2, 12, 39, 3])
    np.testing.assert_allclose(X.take(scattered), filled(G)[:, order][:, scattered])
    listed = covey.open([tmp_path / "chrX.bed", tmp_path / "chr2.bed"])
    assert listed.shape == (50, 20)
    assert listed.positions["chromosome"].iloc[0] == "2"


@pytest.mark.parametrize("wanted", ["s7 s29 s0 s11 s3 s4 s21", "s0 s1 s2 s3 s4 s5 s6"], ids=["scattered", "first"])
def test_samples_are_chosen_and_ordered_by_id(wanted, tmp_path):
    G, wanted = genotypes(30, 8), wanted.split()
    rows = [int(one[1:]) for one in wanted]
    X = covey.open(write_bed(tmp_path / "x.bed", G), samples=wanted)
    kept = [int(name[1:]) for name in X.names]
    np.testing.assert_allclose(decoded(X), filled(G[rows])[:, kept])
    assert list(X.samples) == wanted


def test_rare_and_constant_variants_are_left_out(tmp_path):
    G = genotypes(100, 6, missing=0)
    G[:, 1] = 0.0
    G[:, 2] = np.nan
    G[:, 3] = 0.0
    G[:5, 3] = 1.0  # a frequency of 0.025
    G[:, 4] = np.where(np.arange(100) < 50, 2.0, np.nan)  # constant but for missing ones
    path = write_bed(tmp_path / "x.bed", G)
    assert covey.open(path).names == ["x0", "x3", "x5"]
    assert covey.open(path, min_maf=0.03).names == ["x0", "x5"]
    assert covey.open(path, min_maf=0.02).names == ["x0", "x3", "x5"]
    regions = pd.DataFrame({"chromosome": ["1"], "start": [350], "end": [450], "name": ["gene"]})
    assert covey.open(path, regions=regions).names == ["x3"]
    with pytest.raises(ValueError, match=r"none of 6 variants .* lower min_maf"):
        covey.open(path, min_maf=0.5)


def test_names_of_variants_that_have_none_or_share_one(tmp_path):
    path = write_bed(tmp_path / "x.bed", genotypes(40, 4), names=[".", "a", "a", "b"])
    assert covey.open(path).names == ["1:100:A:C", "1:200:A:C", "1:300:A:C", "b"]
    write_bed(path, genotypes(40, 2), names=["a", "a"], positions=[5, 5])
    with pytest.raises(ValueError, match="has variant '1:5:A:C' more than once"):
        covey.open(path)


def test_families_tell_samples_apart(tmp_path):
    path = write_bed(tmp_path / "x.bed", genotypes(3, 40), samples=["1", "2", "1"])
    with pytest.raises(ValueError, match=r"x.fam lists sample '1' twice"):
        covey.open(path)
    path.with_suffix(".fam").write_text("a 1 0 0 0 -9\na 2 0 0 0 -9\nb 1 0 0 0 -9\n")
    assert list(covey.open(path).samples) == ["a_1", "a_2", "b_1"]


# ---------------------------------------------------------------------- products that are kept


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_that_are_kept_give_those_of_residuals(m, dtype, tmp_path):
    G, rng = genotypes(131, 150, missing=0.1), np.random.default_rng(0)
    X = covey.open(write_bed(tmp_path / "x.bed", G), dtype=dtype)
    X = X.beside(pd.DataFrame({"year": rng.integers(1950, 2000, 131)}, index=X.samples))
    y, weight, part = rng.standard_normal((131, m)), rng.random(131), rng.integers(-1, 3, 131)
    weights = [np.where((part >= 0) & (part != k), weight, 0.0) for k in range(4)]
    which, kept = np.array([0, 1, 3, 3, 2]), {}
    for columns in ([3, 150, 7], [7, 9, 3, 9], [9]):  # new ones, one of them twice, and none that is new
        coefs, levels = rng.standard_normal((5, m, len(columns))) / 100, rng.standard_normal((5, m))
        models = Models(y, weights, which, np.array(columns), coefs, levels)
        before = X.n_passes
        found = X.residual_products(replace(models, kept=kept))
        assert X.n_passes - before == (len(columns) > 1)
        digits = 1e-11 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(found, X.residual_products(models), rtol=digits, atol=100 * digits)
    # weights that differ where both are positive are no parts of the rows
    models = replace(models, weights=[2 * weights[0], *weights[1:]])
    np.testing.assert_allclose(X.residual_products(replace(models, kept={})), X.residual_products(models))


def test_products_are_not_kept_if_they_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr("covey.designs.part_products.MOST_KEPT", 4 * 2 * 40)
    X = covey.open(write_bed(tmp_path / "x.bed", genotypes(50, 40)))
    assert X.shape[1] == 40
    y, odd, kept = np.arange(50.0)[:, None], np.arange(50) % 2, {}
    for columns in ([1, 2], [1, 2, 3], [5]):
        coefs, levels = np.ones((2, 1, len(columns))), np.zeros((2, 1))
        models = Models(y, [odd / 25, (1 - odd) / 25], np.array([0, 1]), np.array(columns), coefs, levels)
        found = X.residual_products(replace(models, kept=kept))
        np.testing.assert_allclose(found, X.residual_products(models), atol=1e-12)


@pytest.fixture
def few_near(monkeypatch):
    for name, number in {"NEAR_COLUMNS": 12, "ALL_NEAR": 20, "MOST_ROWS": 0}.items():
        monkeypatch.setattr(f"covey.search.table.{name}", number)


@pytest.mark.parametrize("selection", ["holdout", 3])
def test_far_variants_wake_as_in_the_dense_array(selection, few_near, tmp_path, monkeypatch):
    monkeypatch.setattr("covey.search.far.GROWTH", 3)
    G, rng = genotypes(600, 300), np.random.default_rng(5)
    G[:, 200:260] = G[:, 100:160]  # some variants are equal
    D = filled(G)
    y = D[:, 100:118] @ rng.uniform(0.2, 0.5, 18) + D[:, 220] + rng.standard_normal(600)
    X = covey.open(write_bed(tmp_path / "x.bed", G))
    found, expected = (GroupSparseRegressor(selection=selection).fit(Z, y) for Z in (X, D))
    assert len(expected.selected_groups_) > 12
    assert found.selected_groups_ == [f"x{j}" for j in expected.selected_groups_]
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    assert X.n_passes > 3  # far variants were checked, and some were missing


def test_products_of_an_earlier_deal_are_not_kept(few_near, tmp_path, monkeypatch):
    counts, deal = [], Table.dealt

    def counted(table, parts):
        before, other = len(table.kept), deal(table, parts)
        counts.append((before, len(table.kept), len(other.kept)))
        return other

    monkeypatch.setattr(Table, "dealt", counted)
    G, rng = genotypes(200, 200, missing=0), np.random.default_rng(3)
    X = covey.open(write_bed(tmp_path / "x.bed", G))
    GroupSparseRegressor().fit(X, G[:, :14] @ np.full(14, 0.5) + 2 * rng.standard_normal(200))
    assert set(counts) <= {(1, 0, 0), (0, 0, 0)}
    assert counts[0] == (1, 0, 0)


# ---------------------------------------------------------------------- other samples


def test_prediction_on_other_samples_uses_the_variants_alleles_and_means_of_the_fit(tmp_path):
    G = genotypes(300, 20)
    G[250:, 2] = 0.0  # constant on the new samples
    y = filled(G)[:, 2] + filled(G)[:, 7] + 0.1 * np.random.default_rng(0).standard_normal(300)
    X = covey.open(write_bed(tmp_path / "fit.bed", G[:250]), min_maf=0.1)
    model = GroupSparseRegressor().fit(X, y[:250])
    order = np.random.default_rng(1).permutation(20)
    swapped = write_bed(tmp_path / "new.bed", 2 - G[250:, order], names=[f"x{j}" for j in order], alleles=("C", "A"))
    new = covey.open(swapped, like=X)
    expected = filled(G[250:], np.nanmean(G[:250], axis=0))
    np.testing.assert_allclose(decoded(new), expected, rtol=1e-15)
    np.testing.assert_allclose(model.predict(new), expected @ model.coef_ + model.intercept_, rtol=1e-12)
    with pytest.raises(ValueError, match="leave out min_maf and regions"):
        covey.open(swapped, like=X, min_maf=0.1)
    with pytest.raises(ValueError, match=r"has variant 'x19' of like= not at all"):
        covey.open(write_bed(tmp_path / "few.bed", G[250:, :19]), like=X)
    with pytest.raises(ValueError, match=r"variant 'x0' has the alleles G and C, but A and C in like="):
        covey.open(write_bed(tmp_path / "odd.bed", G[250:], alleles=("G", "C")), like=X)


def test_an_allele_that_no_new_sample_has(tmp_path):
    X = covey.open(write_bed(tmp_path / "fit.bed", genotypes(60, 4)))
    none_of_a = write_bed(tmp_path / "few.bed", np.zeros((3, 4)), alleles=("0", "C"))
    np.testing.assert_array_equal(decoded(covey.open(none_of_a, like=X)), 0.0)
    only_a = write_bed(tmp_path / "many.bed", np.zeros((3, 4)), alleles=("0", "A"))
    np.testing.assert_array_equal(decoded(covey.open(only_a, like=X)), 2.0)


def test_new_samples_that_were_not_opened_like_the_fit(tmp_path):
    X = covey.open(write_bed(tmp_path / "x.bed", genotypes(60, 20)))
    model = GroupSparseRegressor(selection="ebic").fit(X, np.arange(60.0))
    with pytest.raises(ValueError, match=r"19 features, but .* expecting 20 .* Open new genotypes with like="):
        model.predict(covey.open(write_bed(tmp_path / "y.bed", genotypes(60, 19))))


# ---------------------------------------------------------------------- rows


def test_labels_of_y_are_the_samples_in_their_order(path):
    X, y = covey.open(path), np.arange(10.0)
    expected = GroupSparseRegressor(selection="ebic").fit(X, y).coef_
    for labels in (X.samples, np.arange(10) + 7):  # numbers that are no ids only count rows
        model = GroupSparseRegressor(selection="ebic").fit(X, pd.Series(y, index=labels))
        np.testing.assert_array_equal(model.coef_, expected)
    turned = pd.Series(y, index=X.samples[::-1])
    unknown = pd.Series(y, index=[f"q{i}" for i in range(10)])
    for bad, label in ((turned, "s9"), (unknown, "q0")):
        message = rf"y has the label '{label}' in row 0, where X has 's0': give y\.loc\[X\.row_names\]"
        for fit in (
            lambda y: GroupSparseRegressor().fit(X, y),
            lambda y: covey.limit_path(X, y),
            lambda y: covey.nested_score(GroupSparseRegressor(), X, y),
        ):
            with pytest.raises(ValueError, match=message):
                fit(bad)
    for name in ("sample_weight", "offset", "split_groups"):
        with pytest.raises(ValueError, match=f"{name} has the label 's9'"):
            GroupSparseRegressor().fit(X, y, **{name: turned + 1})


@pytest.mark.parametrize("samples", [None, [f"s{i}" for i in range(120, 0, -1)]], ids=["all", "some"])
def test_some_rows_have_the_columns_of_all(samples, tmp_path):
    X = covey.open(write_bed(tmp_path / "x.bed", genotypes(123, 20)), samples=samples)
    X = X.beside(pd.DataFrame({"age": np.arange(len(X.samples)) / 7}, index=X.samples))
    at = np.array([5, 2, 77, 30, 31])
    some = X.on_rows(at)
    assert list(some.samples) == list(X.samples[at])
    np.testing.assert_array_equal(decoded(some), decoded(X)[at])
    dense = covey.designs.as_design(decoded(X)[at])
    members, starts, q = np.arange(21), np.arange(22), np.full(5, 0.2)
    for centre in (True, False):
        found, expected = (
            Z.moments(np.arange(5.0), q, members, starts, centre=centre, scale=np.full(21, 0.5)) for Z in (some, dense)
        )
        for name in ("mean", "variance", "correlation", "blocks"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    np.testing.assert_array_equal(some.extremes(members, q), dense.extremes(members, q))


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_nested_scores_are_those_of_the_dense_array(scoring, tmp_path):
    G, rng = genotypes(90, 40), np.random.default_rng(1)
    y = filled(G)[:, 3] + rng.standard_normal(90)
    X = covey.open(write_bed(tmp_path / "x.bed", G))
    found, expected = (
        covey.nested_score(GroupSparseRegressor(selection=2), Z, y, cv=3, scoring=scoring, references=references)
        for Z, references in ((X, True), (filled(G), False))
    )
    np.testing.assert_allclose(found.folds, expected.folds, atol=1e-10)
    assert set(found.references) == {"null"}
    assert "need all columns in memory" in str(found)
    with pytest.raises(ValueError, match="references= need X in memory"):
        covey.nested_score(GroupSparseRegressor(), X, y, references={"mine": GroupSparseRegressor()})


# ---------------------------------------------------------------------- covariates


def test_covariates_beside_genotypes_stay_in_every_model(tmp_path):
    G = genotypes(200, 30)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(20, 80, 203), "sex": rng.integers(0, 2, 203)})
    table.index = [f"s{i}" for i in rng.permutation(203)]
    X = covey.open(write_bed(tmp_path / "x.bed", G)).beside(table)
    ages = table.loc[[f"s{i}" for i in range(200)], "age"].to_numpy()
    np.testing.assert_array_equal(X.take(np.array([30])).ravel(), ages)
    D = np.hstack([filled(G), table.loc[list(X.samples)].to_numpy(float)])
    R = rng.standard_normal((2, 200))
    np.testing.assert_allclose(X.correlate(R), R @ D, atol=1e-9)
    np.testing.assert_allclose(X.extremes(np.array([31, 2, 30]), np.ones(200))[1], D[:, [31, 2, 30]].max(axis=0))
    y = filled(G)[:, 4] + rng.standard_normal(200)
    model = GroupSparseRegressor(always=["age", "sex"]).fit(X, y)
    assert {"age", "sex", "x4"} <= set(model.selected_groups_)
    groups = Groups.from_intervals({"chromosome": ["1"], "start": [1], "end": [1000], "name": ["gene"]}, X.positions)
    assert groups["gene"].tolist() == list(range(10))
    assert groups.names[-2:] == ("age", "sex")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("s3"), r"no row of 1 samples, the first is 's3'"),
        (lambda table: table.rename({"s1": "s0"}), r"several rows of sample 's0'"),
        (lambda table: table.astype(str), r"Column 'age' .* encode"),
        (lambda table: table.where(table > 3), r"Column 'age' .* no value for 4 samples, the first is 's0'"),
        (lambda table: table.to_numpy(), r"Covariates are a pandas DataFrame .* not a ndarray"),
        (lambda table: table.rename(columns={"age": "x5"}), r"has the name of another column: x5"),
    ],
)
def test_covariates_that_do_not_match(change, message, path):
    X = covey.open(path)
    table = pd.DataFrame({"age": np.arange(10.0)}, index=X.samples)
    assert X.beside(table["age"]).names[-1] == "age"
    with pytest.raises(ValueError, match=message):
        X.beside(change(table))


# ---------------------------------------------------------------------- bad input


def test_damaged_files(path):
    good = path.read_bytes()
    for change, message in [
        (good[:-1], r"x\.bed is truncated: 30 variants \(x\.bim\) of 10 samples \(x\.fam\) take 93 bytes, .* has 92"),
        (good + b"\0", "x.bed is too long"),
        (b"\x00" + good[1:], "x.bed is not a PLINK .bed file: it starts with 00 1b 01"),
        (good[:2] + b"\x00" + good[3:], "sample by sample: convert"),
        (b"", "not a PLINK"),
    ]:
        path.write_bytes(change)
        with pytest.raises(ValueError, match=message):
            covey.open(path)


def test_a_file_that_is_cut_after_it_was_opened(path):
    X = covey.open(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match="cut short after it was opened"):
        X.correlate(np.ones((1, 10)))


@pytest.mark.parametrize("suffix", [".bim", ".fam"])
def test_tables_that_disagree(path, suffix):
    table = path.with_suffix(suffix)
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[: -1 if suffix == ".bim" else -2]))
    with pytest.raises(ValueError, match=r"must be of one data set"):
        covey.open(path)
    if suffix == ".fam":  # nine samples take as many bytes as ten
        table.write_text("".join(lines[:4] + lines[5:]))
        with pytest.raises(ValueError, match=r"genotypes of more samples than the 9 of x\.fam"):
            covey.open(path)
    table.write_text("".join(lines)[:-5])
    with pytest.raises(ValueError, match=rf"x\{suffix} must have 6 columns in every line"):
        covey.open(path)
    table.unlink()
    with pytest.raises(FileNotFoundError, match=rf"There is no file .*x\{suffix}"):
        covey.open(path)


def test_positions_that_are_no_numbers(path):
    table = path.with_suffix(".bim")
    table.write_text(table.read_text().replace("\t300\t", "\tthree\t"))
    with pytest.raises(ValueError, match=r"x\.bim, line 3: the position 'three'"):
        covey.open(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": ["s1", "x1"]}, r"no sample 'x1' \(1 of 2 ids are unknown\); its samples are named like 's0'"),
        ({"samples": ["s1", "s1"]}, "samples names 's1' more than once"),
        ({"samples": "s1"}, r"samples lists ids: give \['s1'\]"),
        ({"samples": []}, "samples is empty"),
        ({"min_maf": 0.7}, "min_maf"),
        ({"dtype": "int8"}, "dtype must be float32 or float64"),
        ({"like": "x.bed"}, "like= takes opened genotypes, .* not a str"),
    ],
)
def test_options_that_are_wrong(options, message, path):
    with pytest.raises(ValueError, match=message):
        covey.open(path, **options)


def test_files_with_different_samples(path):
    write_bed(path.with_name("y.bed"), genotypes(10, 3), samples=[f"t{i}" for i in range(10)])
    with pytest.raises(ValueError, match=r"y\.fam and .*x\.fam list different samples"):
        covey.open(str(path.with_name("*.bed")))
    with pytest.raises(ValueError, match="more than once"):
        covey.open([path, path])
    with pytest.raises(FileNotFoundError, match=r"No \.bed file matches"):
        covey.open(str(path.with_name("z*.bed")))


def test_terms_are_of_tables(path):
    with pytest.raises(ValueError, match="X is a GenotypeDesign, and terms= reads tables in memory"):
        GroupSparseRegressor(terms="auto").fit(covey.open(path), np.arange(10.0))


def test_files_are_never_written_to(path):
    def states():
        files = [path.with_suffix(suffix) for suffix in (".bed", ".bim", ".fam")]
        return [(hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns) for file in files]

    before = states()
    for file in path.parent.iterdir():
        file.chmod(0o444)
    X = covey.open(path)
    GroupSparseRegressor(selection="ebic").fit(X, np.arange(10.0))
    assert states() == before
    with pytest.raises(ValueError, match="read-only"):
        covey.open(path, in_memory=True).files[0].packed[0, 0] = 1
