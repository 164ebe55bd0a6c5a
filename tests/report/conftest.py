"""One browser for all tests of reports."""

import pytest

from report.browser import launched


@pytest.fixture(scope="session")
def browser():
    with launched() as found:
        yield found
