"""Which groups to believe: how often each is found in random halves of the rows, and a bound on the mistakes."""

from __future__ import annotations

from covey.evidence import StabilitySelection
from covey.report.group_table import short_name
from covey.report.page import escape

__all__ = ["stability_section"]

# The number of unselected groups to list, and the most groups in the table.
OTHERS, MOST = 5, 50


def stability_section(found: StabilitySelection) -> str:
    """The section, without its heading."""
    frame = found.to_frame()
    n = int(frame["selected"].sum())
    shown = frame.head(min(n + OTHERS, MOST))
    shown = shown[shown["frequency"] > 0]
    told = (
        f"<p>The rows were split into two halves {found.n_pairs} times, and {found.n_first} of {found.n_groups} groups "
        f"were selected on each half. <b>{n} groups</b> were selected on at least {found.threshold:.0%} of the halves. "
        f"{escape(found.promise())}</p>"
    )
    rows = "".join(
        f'<tr><th scope="row"><bdi>{short_name(str(name))}</bdi></th><td>{row["size"]}</td>'
        f"<td>{row['frequency']:.0%}</td><td>{'yes' if row['selected'] else ''}</td></tr>"
        for name, row in zip(shown.index, shown.to_dict("records"), strict=True)
    )
    table = (
        '<div class="scroll"><table><thead><tr><th scope="col">group</th><th scope="col">columns</th>'
        '<th scope="col">found in</th><th scope="col">selected</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    more = f'<p class="note">And {n - MOST} more selected groups.</p>' if n > MOST else ""
    minded = "".join(f'<p class="note">{escape(remark)}</p>' for remark in found.remarks)
    return told + (table if rows else "") + more + minded
