"""Run a command in this process, and look at what is left on the disk."""

import json

from typer.testing import CliRunner

from covey.cli.app import app

RUNNER = CliRunner()


def covey(*arguments, **options):
    """Run a command; fits are repeated without parts of the rows only with --nested, for it takes six times as long."""
    if arguments[:1] == ("fit",) and "--nested" not in arguments:
        arguments = (*arguments, "--no-nested")
    return RUNNER.invoke(app, list(map(str, arguments)), env={"COLUMNS": "200", "NO_COLOR": "1"}, **options)


def done(*arguments, **options):
    """Run a command that succeeds."""
    result = covey(*arguments, **options)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def as_json(*arguments):
    """What a command says as JSON."""
    return json.loads(done(*arguments, "--json").stdout)


def run_of(folder):
    """What a fit wrote about itself."""
    return json.loads((folder / "run.json").read_text())


def refused(result, *words):
    """Exit code 2 and one line on the error stream that holds these words."""
    assert result.exit_code == 2, (result.output, result.exception)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]
    assert result.stdout == ""
