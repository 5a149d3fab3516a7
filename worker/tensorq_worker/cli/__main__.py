"""Runs the command line as ``python -m tensorq_worker.cli``."""

from tensorq_worker.cli.main import main

main(prog_name="tensorq")
