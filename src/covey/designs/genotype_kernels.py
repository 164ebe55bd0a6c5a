"""Compiled loops over genotypes of two bits, four to a byte; imported only when genotypes are opened."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit


@njit(cache=True, nogil=True)
def decode(packed, variants, values, rows, start, stop, places, out):
    """Write ``values[c, code]`` of the samples start to stop of variant ``variants[c]`` to ``out[places[c]]``.

    `rows` are the samples in the file, or empty for the first ones in order; then start is a multiple of four.
    """
    for c in range(variants.size):
        line, value, target = packed[variants[c]], values[c], out[places[c]]
        if rows.size:
            for i in range(start, stop):
                row = rows[i]
                target[i - start] = value[(line[row >> 2] >> (2 * (row & 3))) & 3]
            continue
        first, n_bytes = start >> 2, (stop - start) >> 2
        for b in range(n_bytes):
            byte = line[first + b]
            target[4 * b] = value[byte & 3]
            target[4 * b + 1] = value[(byte >> 2) & 3]
            target[4 * b + 2] = value[(byte >> 4) & 3]
            target[4 * b + 3] = value[byte >> 6]
        for i in range(start + 4 * n_bytes, stop):
            target[i - start] = value[(line[i >> 2] >> (2 * (i & 3))) & 3]


@njit(cache=True, nogil=True)
def count_codes(packed, rows, n):
    """How many of the samples have each of the four codes, per variant; shape (n_variants, 4)."""
    counts = np.zeros((packed.shape[0], 4), np.int64)
    for v in range(packed.shape[0]):
        line = packed[v]
        if rows.size:
            for row in rows:
                counts[v, (line[row >> 2] >> (2 * (row & 3))) & 3] += 1
            continue
        bytes_seen = np.zeros(256, np.int64)
        for b in range(n >> 2):
            bytes_seen[line[b]] += 1
        for byte in range(256):
            for place in range(4):
                counts[v, (byte >> (2 * place)) & 3] += bytes_seen[byte]
        for i in range(n - n % 4, n):
            counts[v, (line[i >> 2] >> (2 * (i & 3))) & 3] += 1
    return counts
