"""Reports: self-contained pages, and the same on a terminal."""
