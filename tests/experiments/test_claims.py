"""Verdicts follow from the table, whatever it says."""

import numpy as np
import pandas as pd
import pytest

from covey.experiments import Claim, Verdict, fig2, fig7, fig12, judge, table3
from covey.experiments.claim import tabulate
from covey.experiments.traces import CODE, OFF, TEXT, TRUTH, rows, series


def test_judge():
    assert judge(True) is judge(True, True) is Verdict.HOLDS
    assert judge(False, True) is Verdict.CODE_ONLY
    assert judge(False, False) is judge(False) is Verdict.FAILS


def test_tabulate_has_the_columns_of_claims_csv():
    frame = tabulate([Claim("fig2", "a", "b", "c", Verdict.CODE_ONLY)])
    assert list(frame.columns) == ["id", "claim", "expected", "measured", "verdict"]
    assert frame["verdict"].tolist() == ["holds in the code only"]
    assert list(tabulate([]).columns) == list(frame.columns)


def figure_2(text_end, code_end, magnitude=4.0):
    t, parts = [0, 1, 2], []
    for mode, end in ((TEXT, text_end), (CODE, code_end), (fig2.LONG, text_end)):
        parts += [rows(mode, "error", 0, t, [900.0, 0.01, end])]
        parts += [rows(mode, "magnitude", 0, t, [0.0, magnitude, magnitude])]
        parts += [rows(mode, "magnitude", OFF, t, [0.0, 0.0, 0.0])]
    for quantity, value in (("magnitude", 4.0), ("error", 0.01), ("signal", 900.0)):
        parts += [rows(TRUTH, quantity, 0, 0, value)]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("text_end", "code_end", "verdict"),
    [(0.011, 180.0, Verdict.CODE_ONLY), (0.5, 180.0, Verdict.HOLDS), (0.011, 0.011, Verdict.FAILS)],
)
def test_early_stopping_in_figure_2(text_end, code_end, verdict):
    claim = fig2.claims(figure_2(text_end, code_end))[-1]
    assert "Early stopping" in claim.claim
    assert claim.verdict is verdict


def test_wrong_magnitudes_in_figure_2():
    assert fig2.claims(figure_2(0.011, 180.0, magnitude=4.5))[1].verdict is Verdict.FAILS


def test_small_start_in_figure_7_is_judged_by_its_sign():
    t = [0.0, 1.0, 2.0]
    parts = [rows(TRUTH, "signal", 0, 0, 16.0), *(rows(TRUTH, "magnitude", l, 0, 1.4) for l in range(4))]
    for kind, errors in ((fig7.ZERO, [16, 1, 0.04]), (fig7.POSITIVE, [16, 1, 0.04]), (fig7.NEGATIVE, [16, 17, 24])):
        parts += [rows(kind, "error", 0, t, errors)]
    for l in range(4):
        parts += [rows(fig7.ZERO, "alignment", l, t, [0, 0.95, 1.0]), rows(fig7.ZERO, "magnitude", l, t, [0, 0.1, 1.4])]
    parts += [rows(fig7.RANDOM, "error", 0, t, [16, 12, 8]), rows(fig7.RANDOM, "error", 1, t, [16, 1, 0.04])]
    claims = fig7.claims(pd.concat(parts, ignore_index=True))
    assert [claim.verdict for claim in claims] == [Verdict.HOLDS, Verdict.HOLDS, Verdict.CODE_ONLY, Verdict.HOLDS]


def figure_12(gaps):
    """Errors with these gaps in log2 to the oracle, over two levels."""
    table = [
        (method, 2.0 ** (4 * level + gap), 3, False, level, 32.0 / 4**level, seed)
        for method, both in gaps.items()
        for level, gap in enumerate(both)
        for seed in (0, 100)
    ]
    return pd.DataFrame(table, columns=["method", "error", "groups", "at_edge", "level", "snr", "seed"])


def test_figure_12_needs_a_lead_at_every_ratio():
    gaps = {fig12.ORACLE: (0, 0), fig12.LASSO: (2, 2), fig12.WIDE: (2, 1.5), fig12.DUAL: (0.3, 1.5)}
    gaps |= {fig12.CODE: (0.1, 0.1), fig12.TEXT: (0.1, 0.2)}
    assert [claim.verdict for claim in fig12.claims(figure_12(gaps))] == [Verdict.HOLDS] * 4
    behind = gaps | {fig12.TEXT: (0.4, 0.2)}
    assert fig12.claims(figure_12(behind))[0].verdict is Verdict.CODE_ONLY


def test_table_3_asks_for_two_standard_errors():
    rng = np.random.default_rng(0)
    others = {"mean": 0.021, "group lasso": 0.018, "primal-dual": 0.018, "Algorithm 1": 0.018}

    def frame(algorithm_2):
        table = [
            (split, reading, kind, method, mse + 1e-4 * rng.standard_normal(), split % 2 == 0)
            for split in range(10)
            for reading in table3.READINGS
            for kind in table3.PREPARED
            for method, mse in {**others, "Algorithm 2": algorithm_2}.items()
        ]
        return pd.DataFrame(table, columns=["split", "reading", "prepared", "method", "mse", "outlier_held_out"])

    ahead, level = table3.claims(frame(0.015)), table3.claims(frame(0.018))
    assert [claim.verdict for claim in ahead[:2]] == [Verdict.HOLDS, Verdict.HOLDS]
    assert [claim.verdict for claim in level[:2]] == [Verdict.FAILS, Verdict.FAILS]
    assert ahead[2].verdict is Verdict.FAILS  # the published errors are above those of predicting the mean


def test_series_says_what_is_missing():
    with pytest.raises(ValueError, match="no 'error' 0 in mode 'other'"):
        series(rows(TEXT, "error", 0, 0, 1.0), "other", "error")
