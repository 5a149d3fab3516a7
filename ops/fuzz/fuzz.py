"""Fuzzes whatever reads bytes that others may have written: a million inputs over four targets.

    python ops/fuzz/fuzz.py [--inputs 1000000] [--seed 1] [--target payload]

Atheris chooses the inputs by the code that they reach, starting from the committed corpus. A run ends with 1
at the first exception that its target does not declare, at an input that takes longer than a few seconds, and
where the process outgrows its memory; the input is left in out/fuzz/, to be put into the corpus with its fix.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

HERE, OUT = Path(__file__).parent, Path("out/fuzz")
CORPUS, WORDS = HERE / "corpus", HERE / "words.dict"
# How many of the inputs each target gets: the wire format most, as any producer may write it.
SHARES = {"payload": 0.5, "claim": 0.2, "publication": 0.2, "reason": 0.1}
LONGEST_INPUT_BYTES = 1 << 14
LONGEST_S, MOST_MEMORY_MIB = 5, 512


def fuzz(target: str, flags: list[str]) -> None:
    """Runs one target in this process, which ends with it."""
    import atheris

    # Only what is imported here can be followed: nothing of tensorq may have been before.
    with atheris.instrument_imports(include=["tensorq", "tensorq_worker"], enable_loader_override=False):
        from ops.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *flags], TARGETS[target])
    atheris.Fuzz()


def flags_of(target: str, inputs: int, seed: int) -> list[str]:
    """LibFuzzer's command line for a target."""
    found = OUT / target
    found.mkdir(parents=True, exist_ok=True)
    return [
        *(str(found), str(CORPUS / target), f"-runs={inputs}", f"-seed={seed}"),
        *(f"-max_len={LONGEST_INPUT_BYTES}", f"-timeout={LONGEST_S}", f"-rss_limit_mb={MOST_MEMORY_MIB}"),
        *(f"-artifact_prefix={OUT}/{target}-", f"-dict={WORDS}", "-verbosity=0", "-print_final_stats=1"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="over all targets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=SHARES, help="only this one, with all inputs")
    parser.add_argument("--here", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        parser.error("atheris is not installed: pip install '.[dev]' on Linux, Python 3.11 to 3.13")
    if options.here is not None:
        fuzz(options.target, options.here)
    for target in [options.target] if options.target else SHARES:
        inputs = options.inputs if options.target else round(options.inputs * SHARES[target])
        started = time.perf_counter()
        command = [sys.executable, __file__, "--target", target, "--here"]
        flags = flags_of(target, inputs, options.seed)
        ended = subprocess.run([*command, *flags], stderr=subprocess.PIPE, text=True, check=False)
        stats = dict(re.findall(r"^stat::(\w+): +(\d+)$", ended.stderr, re.MULTILINE))
        if ended.returncode or int(stats["number_of_executed_units"]) < inputs:
            print(ended.stderr, file=sys.stderr)
            raise SystemExit(f"{target}: a finding (exit code {ended.returncode}); its input is in {OUT}")
        print(
            f"{target}: {inputs:,} inputs in {time.perf_counter() - started:.0f} s, "
            f"the slowest {stats['slowest_unit_time_sec']} s, memory up to {stats['peak_rss_mb']} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
