"""Reports of classes, counts and several responses in a browser: ratios follow the slider, and every width fits."""

import numpy as np
import pytest

from covey import GroupSparseClassifier, GroupSparseCox, GroupSparseRegressor, survival
from covey.report import FitReport, write
from covey.report.page import ratio, shown
from report.browser import check_structure, check_width, opened

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 12))
ETA = X @ np.r_[1.5, -1.0, np.zeros(6), 1.2, 0.0, 0.0, 0.0]
THREE = np.array(["red", "green", "a rather long name of a class"])[
    (np.column_stack([ETA, X[:, 8], -ETA]) + RNG.gumbel(size=(90, 3))).argmax(axis=1)
]
TIMES = survival(
    RNG.exponential(np.exp(-ETA)), RNG.random(90) < 0.7, strata=np.array(["a rather long name of a stratum", "b"] * 45)
)
CASES = {
    "two classes": (GroupSparseClassifier(2, selection="bic"), np.where(ETA + RNG.logistic(size=90) > 0, "yes", "no")),
    "three classes": (GroupSparseClassifier(2, selection="bic", always=[5]), THREE),
    "counts": (GroupSparseRegressor(2, loss="poisson", selection="bic"), RNG.poisson(np.exp(0.5 * ETA))),
    "survival": (GroupSparseCox(2, selection="bic", always=[5]), TIMES),
    "several": (GroupSparseRegressor(2, selection="bic"), np.column_stack([ETA, -ETA]) + RNG.standard_normal((90, 2))),
}


@pytest.fixture(scope="module", params=CASES, ids=str)
def shown_report(request, browser, tmp_path_factory):
    """A report and the page that shows it, which is opened once per case."""
    model, y = CASES[request.param]
    report = FitReport.from_model(model.fit(X, y), X, y, nested=2)
    with opened(browser, write(report, tmp_path_factory.mktemp("report") / "report.html")) as page:
        yield report, page


def test_coefficients_and_ratios_follow_the_slider(shown_report):
    report, page = shown_report
    m, effect = max(len(report.frames.outputs), 1), report.effect
    page.locator("#group-table summary").first.click()
    for key, frame in (("ArrowLeft", report.frames.chosen - 1), ("End", report.frames.chosen)):
        page.locator("#time").press(key)
        values = report.frames.groups[0].at(frame)[1].tolist()
        rows = page.locator("#group-table details[open] .coefs tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
        )
        assert len(rows) == report.frames.groups[0].size
        for j, cells in enumerate(rows):
            coefs = values[j * m : (j + 1) * m]
            if m > 1:
                assert cells == [shown(ratio(value) if effect else value, 4) for value in coefs]
            else:
                assert cells[0] == shown(coefs[0], 4)
                assert not effect or cells[1] == shown(ratio(coefs[0]), 4)
        assert page.locator("#readout").inner_text().endswith(report.along.words(frame) if report.along else "")
    page.locator("#group-table summary").first.click()


def test_everything_has_a_name_and_fits_every_width(shown_report):
    check_structure(shown_report[1])
    for width in (1280, 400):
        check_width(shown_report[1], width)
