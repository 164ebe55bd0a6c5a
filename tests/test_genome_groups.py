"""Groups of variants by genes and of genes by pathways."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from covey import Groups

POSITIONS = pd.DataFrame(
    {
        "name": [f"v{j}" for j in range(8)],
        "chromosome": ["1", "1", "1", "1", "2", "2", "X", None],
        "position": [10, 50, 51, 200, 10, 60, 7, np.nan],
    }
)
GENES = pd.DataFrame(
    {"chromosome": ["chr1", "1", 2, 23], "start": [5, 51, 60, 1], "end": [51, 300, 60, 9], "name": ["A", "B", "C", "D"]}
)


def as_dict(groups):
    return {name: groups[name].tolist() for name in groups.names}


def test_overlapping_genes_share_variants():
    groups = Groups.from_intervals(GENES, POSITIONS)
    assert as_dict(groups) == {"A": [0, 1, 2], "B": [2, 3], "C": [5], "D": [6], "v4": [4], "v7": [7]}
    assert groups.overlapping
    assert groups.columns == tuple(POSITIONS["name"])


def test_chromosomes_are_numbers_with_a_point_where_some_are_missing():
    """None would be found in any gene, and with empty="drop" every variant would be a group of its own."""
    numbers = POSITIONS["chromosome"].map({"1": 1, "2": 2, "X": 23})
    assert numbers.dtype == float
    groups = Groups.from_intervals(GENES, POSITIONS.assign(chromosome=numbers), empty="drop")
    assert as_dict(groups) == as_dict(Groups.from_intervals(GENES, POSITIONS))


def test_the_nearest_gene():
    groups = Groups.from_intervals(GENES, POSITIONS, overlap="nearest")
    assert as_dict(groups) == {"A": [0, 1, 2], "B": [3], "C": [5], "D": [6], "v4": [4], "v7": [7]}
    assert not groups.overlapping


def test_flanks_and_genes_in_several_lines():
    lines = pd.DataFrame({"chromosome": [1, 2, 1], "start": [8, 8, 190], "end": [9, 9, 198], "name": ["A", "B", "A"]})
    assert as_dict(Groups.from_intervals(lines, POSITIONS, flank=2))["A"] == [0, 3]
    with pytest.raises(ValueError, match=r"Genes without variants \(2 of 2\): 'A', 'B'; widen .* empty='drop'"):
        Groups.from_intervals(lines, POSITIONS)
    assert Groups.from_intervals(lines, POSITIONS, empty="drop").n_groups == 8


def test_a_bed_file_counts_starts_from_zero(tmp_path):
    path = tmp_path / "genes.bed"
    path.write_text("track name=genes\n# a comment\nchr1\t4\t51\tA\t0\t+\nchr1 50 300 B 0 -\nchr2 59 60 C 0 +\n")
    groups = Groups.from_intervals(path, POSITIONS)
    assert as_dict(groups) == as_dict(Groups.from_intervals(GENES[:3], POSITIONS))


@pytest.mark.parametrize(
    ("genes", "positions", "options", "message"),
    [
        (GENES.drop(columns="end"), POSITIONS, {}, "no column 'end'"),
        (GENES, POSITIONS.drop(columns="position"), {}, "positions has no column 'position'"),
        (GENES, POSITIONS.drop(columns="name"), {}, "positions has no column 'name'"),
        (GENES.astype(object).replace({"start": {51: "x"}}), POSITIONS, {}, "the start of gene 'B' is 'x'"),
        (GENES.replace({"end": {60: 6}}), POSITIONS, {}, "gene 'C' ends before it starts"),
        (GENES, POSITIONS, {"overlap": "split"}, "overlap must be"),
        (GENES, POSITIONS, {"empty": "skip"}, "empty must be"),
        (GENES.replace({"name": {"A": "v4"}}), POSITIONS, {}, "Two groups would have the name 'v4'"),
        (GENES, POSITIONS.replace({"name": {"v7": "v4"}}), {}, "several variants named 'v4'"),
        ("chr1\t4\t51\n", POSITIONS, {}, r"genes\.bed: every line must start with .* not 'chr1 4 51'"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_genes_that_cannot_be_read(genes, positions, options, message, tmp_path):
    if isinstance(genes, str):
        (tmp_path / "genes.bed").write_text(genes)
        genes = tmp_path / "genes.bed"
    with pytest.raises(ValueError, match=message):
        Groups.from_intervals(genes, positions, **options)


def test_pathways(tmp_path):
    path = tmp_path / "sets.gmt"
    path.write_text("one\thttp://x\ta\tb\tunknown\n\ntwo\t\tb\tc\n")
    assert as_dict(Groups.from_gmt(path, ["a", "b", "c", "d"])) == {"one": [0, 1], "two": [1, 2], "d": [3]}
    # several columns of one gene
    assert as_dict(Groups.from_gmt(path, list("abcbdd"))) == {"one": [0, 1, 3], "two": [1, 2, 3], "d": [4, 5]}
    genes = Groups.from_lists([[0, 1], [1, 2], [3], [4]], names=list("abcz"), overlap=True)
    assert as_dict(Groups.from_gmt(path, genes)) == {"one": [0, 1, 2], "two": [1, 2, 3], "z": [4]}
    with pytest.raises(ValueError, match=r"sets\.gmt without any of the genes \(1 of 2\): 'one'"):
        Groups.from_gmt(path, ["c"])
    assert as_dict(Groups.from_gmt(path, ["c"], empty="drop")) == {"two": [0]}


@pytest.mark.parametrize(
    ("text", "message"), [("one\tx\n", "line 1: a pathway is"), ("a\tx\tb\na\tx\tb\n", "line 2: pathway 'a' occurs")]
)
def test_gmt_files_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "sets.gmt").write_text(text)
    with pytest.raises(ValueError, match=message):
        Groups.from_gmt(tmp_path / "sets.gmt", ["b"])
