"""Which groups to believe: how often each is found in half of the rows, and how many of them are mistakes at most."""

from __future__ import annotations

from covey.report.group_table import short_name
from covey.report.page import escape
from covey.stability import StabilitySelection

__all__ = ["stability_section"]

# Groups that the table has beside the selected ones, and at most.
OTHERS, MOST = 5, 50


def stability_section(found: StabilitySelection) -> str:
    """The section, without its heading."""
    frame = found.to_frame()
    n = int(frame["selected"].sum())
    shown = frame.head(min(n + OTHERS, MOST))
    shown = shown[shown["frequency"] > 0]
    told = (
        f"<p>The rows were split in two halves {found.n_pairs} times, and each half selected {found.n_first} of "
        f"{found.n_groups} groups. <b>{n} of them</b> were selected by at least {found.threshold:.0%} of the halves. "
        f"{escape(found.promise())}</p>"
    )
    rows = "".join(
        f'<tr><th scope="row"><bdi>{short_name(str(name))}</bdi></th><td>{row["size"]}</td>'
        f"<td>{row['frequency']:.0%}</td><td>{'yes' if row['selected'] else ''}</td></tr>"
        for name, row in zip(shown.index, shown.to_dict("records"), strict=True)
    )
    table = (
        '<div class="scroll"><table><thead><tr><th scope="col">group</th><th scope="col">columns</th>'
        '<th scope="col">found in</th><th scope="col">to be believed</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    more = f'<p class="note">And {n - MOST} more that were.</p>' if n > MOST else ""
    minded = "".join(f'<p class="note">{escape(remark)}</p>' for remark in found.remarks)
    return told + (table if rows else "") + more + minded
