"""Compiled loops over genotypes of two bits, four to a byte; imported only when genotypes are opened."""

from __future__ import annotations

import numpy as np

from covey.compiling import njit


@njit(cache=True, nogil=True)
def decode(packed, values, byte, shift, out):
    """Write ``values[c, code]`` to ``out[c, i]``, where the code of sample i has two bits of ``packed[c, byte[i]]``."""
    for c in range(packed.shape[0]):
        line, value, target = packed[c], values[c], out[c]
        for i in range(byte.size):
            target[i] = value[(line[byte[i]] >> shift[i]) & 3]


@njit(cache=True, nogil=True)
def count_codes(packed, rows, n):
    """How many of the samples have each of the four codes, per variant; shape (n_variants, 4).

    `rows` are the samples in the file, or empty for the first n of them.
    """
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
