"""The page: complete, self-contained, and safe whatever is in it."""

import base64
import re
from html.parser import HTMLParser

from experiments import toy

from covey.datasets import DataNotFoundError
from covey.paper.experiments import Claim, Verdict
from covey.paper.experiments.runner import reproduce
from covey.paper.report.reproduction import paragraphs, render_report, write_report

EVIL = '<script>alert("&")</script>'


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.words.append(data)


def test_everything_is_escaped(monkeypatch, tmp_path):
    toy.install(monkeypatch, title=EVIL, claim=Claim(EVIL, EVIL, EVIL, Verdict.FAILS))
    page = render_report(list(reproduce(["toy"], "quick", tmp_path)), "quick")
    reader = Reader(page)
    assert "script" not in reader.tags
    assert EVIL not in page
    assert "".join(reader.words).count(EVIL) == 7  # the title, and twice the claim


def test_nothing_is_fetched_and_every_table_is_inside(monkeypatch, tmp_path):
    toy.install(monkeypatch)
    outcomes = list(reproduce(["toy"], "quick", tmp_path))
    page = write_report(outcomes, "quick", tmp_path).read_text()
    links = Reader(page).links
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"url\(|@import|https?:", re.sub(r'"data:[^"]*"', "", page))
    csv = next(link for link in links if link.startswith("data:text/csv"))
    assert base64.b64decode(csv.partition(",")[2]) == (tmp_path / "toy" / "data.csv").read_bytes()
    kinds = {link.partition(";")[0] for link in links if link.startswith("data:")}
    assert kinds == {"data:text/csv", "data:image/svg+xml", "data:image/png"}


def test_settings_verdicts_and_run_time_are_shown(monkeypatch, tmp_path):
    toy.install(monkeypatch, claim=Claim("c", "e", "m", Verdict.CODE_ONLY))
    words = " ".join(Reader(render_report(list(reproduce(["toy"], "full", tmp_path)), "full")).words)
    for expected in ("repeats", "30", "run time", "holds in the code only", "What the toy shows.", "full"):
        assert expected in words


def test_an_experiment_without_its_data_says_how_to_get_it(monkeypatch, tmp_path):
    def absent(settings):
        raise DataNotFoundError(f"Get {EVIL} from the shop.")

    toy.install(monkeypatch, run=absent)
    page = render_report(list(reproduce(["toy"], "quick", tmp_path)), "quick")
    assert "from the shop" in page
    assert EVIL not in page
    assert '<table class="claims"' not in page


def test_plain_text_becomes_paragraphs_lists_and_tables():
    text = "One < two.\nStill one.\n\n- first ``a``\n  goes on\n- second\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert paragraphs(text) == (
        '<div class="about"><p>One &lt; two. Still one.</p>'
        "<ul><li>first <code>a</code> goes on</li><li>second</li></ul>"
        "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></div>"
    )
