"""Cases that may end the process, each tried in a forked child."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Generator
from pathlib import Path

# Bytes of address space beyond what is taken, and seconds of processor time for one case.
ADDRESSES, SECONDS = 6 * 2**30, 60


def in_children(verdict: Callable[[int], str], seeds: range) -> Generator[tuple[int, str], None, None]:
    """Every seed with its verdict, empty where all is well; a child that dies is a verdict, and the next goes on."""
    left = list(seeds)
    while left:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _run(verdict, left, write)
        os.close(write)
        said, last = b"", -1
        try:
            with os.fdopen(read, "rb") as stream:
                for line in stream:
                    seed, _, said = line.partition(b" ")
                    last = int(seed)
                    yield last, said.strip().decode().replace("\\n", "\n")
        except BaseException:  # whoever asked has stopped
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left = [seed for seed in left if seed > last]
        if status and left:
            how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            yield left[0], f"the process ended: {how}"
            left = left[1:]


def _run(verdict: Callable[[int], str], seeds: list[int], out: int) -> None:
    taken = Path("/proc/self/statm")
    used = int(taken.read_text().split()[0]) * resource.getpagesize() if taken.exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESSES, used + ADDRESSES))
    for end in (signal.SIGPROF, signal.SIGINT, signal.SIGTERM):
        signal.signal(end, signal.SIG_DFL)  # ends the child
    with os.fdopen(out, "w", buffering=1) as stream:
        for seed in seeds:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                said = verdict(seed)
            except Exception as error:  # of the fuzzer itself
                said = f"no verdict: {type(error).__name__}: {error}"
            one_line = said.replace("\n", "\\n")
            stream.write(f"{seed} {one_line}\n")
    os._exit(0)
