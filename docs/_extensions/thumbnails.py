"""The thumbnail of an example shows the first panels of its first figure, as many as can be read at that size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from sphinx.application import Sphinx

# Panels are added up to this ratio of width to height.
WIDEST = 1.9

# Pixels left blank at the right.
MARGIN = 10


def cropped(picture: Image.Image) -> Image.Image:
    """A wide picture up to its widest gap, which is between two panels; a picture without a gap as it is."""
    width, height = picture.size
    if width <= WIDEST * height:
        return picture
    blank = (np.asarray(picture.convert("L"))[:, : int(WIDEST * height)] == 255).all(axis=0)
    edges = np.flatnonzero(np.diff(np.r_[False, blank, False].astype(int)))  # where gaps begin and end, in turn
    gaps = [(end - begin, begin) for begin, end in edges.reshape(-1, 2) if begin > height // 2]
    return picture.crop((0, 0, int(max(gaps)[1]) + MARGIN, height)) if gaps else picture


def make_thumbnails(app: Sphinx) -> None:
    """Replace the thumbnails that sphinx-gallery has just made, which hold the whole figure."""
    size = app.config.sphinx_gallery_conf["thumbnail_size"]
    for folder in app.config.sphinx_gallery_conf["gallery_dirs"]:
        for figure in Path(app.srcdir, folder, "images").glob("sphx_glr_*_001_2_00x.png"):
            picture = cropped(Image.open(figure).convert("RGB"))
            picture.thumbnail(size)
            name = figure.name.replace("_001_2_00x", "_thumb")
            picture.save(figure.parent / "thumb" / name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", make_thumbnails, priority=900)  # after sphinx-gallery
    return {"parallel_read_safe": True}
