"""Stop rules: functions are wrapped once, and the answer for many models follows from that for one."""

import numpy as np
import pytest

from covey import Groups, group_path
from covey.network import Snapshots, StopRule, as_stop_rule
from network_problems import LAYOUTS, make


class UntilTime(StopRule):
    def __init__(self, last):
        self.last = last

    def stop_at(self, snapshot):
        return snapshot.time >= self.last


def snapshots(n=5):
    columns, counts = np.arange(3), np.zeros(n, dtype=np.intp)
    return Snapshots(np.arange(n), columns, counts, np.zeros((n, 3)), np.zeros(n), counts, np.zeros(n))


@pytest.mark.parametrize(("last", "expected"), [(0, 0), (3, 3), (9, 5)])
def test_the_first_model_at_which_a_rule_stops(last, expected):
    assert UntilTime(last).stop_among(snapshots()) == expected


def test_a_rule_must_say_where_it_stops():
    with pytest.raises(TypeError, match="stop_at"):
        StopRule()


def test_functions_become_rules_and_rules_stay():
    rule = UntilTime(2)
    assert as_stop_rule(rule) is rule
    assert as_stop_rule(None) is None
    assert as_stop_rule(lambda snapshot: snapshot.time >= 2).stop_among(snapshots()) == 2
    with pytest.raises(ValueError, match="function of a Snapshot or a StopRule, not int"):
        group_path(np.eye(4), np.arange(4.0), stop=3)


@pytest.mark.parametrize("engine", ["screened", "exact"])
@pytest.mark.parametrize("overlap", [False, True])
def test_a_function_and_a_rule_end_a_path_at_the_same_model(engine, overlap):
    groups = LAYOUTS["equal"]
    X, y = make(groups)
    if overlap:
        groups = Groups.from_lists([list(range(a, min(a + 4, 120))) for a in range(0, 119, 3)], overlap=True)
    one = group_path(X, y, groups, engine=engine, max_iter=300, stop=UntilTime(100))
    other = group_path(X, y, groups, engine=engine, max_iter=300, stop=lambda snapshot: snapshot.time >= 100)
    assert one.status == other.status == "stopped"
    np.testing.assert_array_equal(one.times, other.times)
    assert one.times[-2] < 100 <= one.times[-1]
