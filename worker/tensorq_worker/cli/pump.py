"""Pump: submits any number of jobs and collects their results meanwhile, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from tensorq import Client, Job
from tensorq.client import Tensors
from tensorq.errors import InputError, QueueFull, TensorqError, UnknownModel, WireError
from tensorq.options import SubmitOptions
from tensorq_worker.cli.inputs import JobFiles
from tensorq_worker.cli.results import Results

WINDOW_JOBS = 1024
SLICE_JOBS = 64
SLICE_BYTES = 32 * 1024 * 1024
PAUSE_S = 0.25
STUCK_S = 30.0

Loaded = tuple[JobFiles, Tensors]


class Pump:
    """Takes the files of jobs to a model.

    At most `WINDOW_JOBS` jobs are under way. Jobs that a full queue refuses are submitted again when there
    is room.

    Args:
        client: of the Redis.
        model: the model's name.
        options: for all jobs.
        results: where failures are noted and results written.
        stored: told of each job that was stored.
        wait: collect the results too.
        tick: called for each job that is dealt with.
    """

    def __init__(
        self,
        client: Client,
        model: str,
        options: SubmitOptions,
        results: Results,
        stored: Callable[[Job], None],
        wait: bool,
        tick: Callable[[], object],
    ) -> None:
        self._client = client
        self._model = model
        self._options = options
        self._results = results
        self._tell_stored = stored
        self._wait = wait
        self._tick = tick
        self._pending: dict[Job, JobFiles] = {}

    def run(self, jobs: Iterable[JobFiles]) -> None:
        """Submits jobs, and returns when all are dealt with.

        Raises:
            QueueFull: the queue stays full although no job waits on it.
            UnknownModel: no worker serves the model, while others are served.
            RedisUnavailable: Redis did not answer or refused. Jobs under way are noted as failures.
        """
        try:
            batch: list[Loaded] = []
            size_bytes = 0
            for files in jobs:
                try:
                    batch.append((files, files.load()))
                except InputError as exc:
                    self._fail(exc)
                    continue
                size_bytes += sum(array.nbytes for array in batch[-1][1].values())
                if len(batch) >= SLICE_JOBS or size_bytes >= SLICE_BYTES:
                    self._submit(batch)
                    batch, size_bytes = [], 0
            self._submit(batch)
            self._collect(0)
        except TensorqError:
            for job, files in self._pending.items():
                self._results.fail(f"job {job.id} was submitted; its result was not collected", str(files))
            raise

    def _submit(self, batch: Sequence[Loaded]) -> None:
        full_since: float | None = None
        while batch:
            refused: list[int] = []
            full: QueueFull | None = None
            try:
                jobs = self._client.submit_many(self._model, [t for _, t in batch], **self._options)
            except QueueFull as exc:
                full, jobs, refused = exc, exc.accepted, exc.refused
            except UnknownModel:
                raise
            except (InputError, WireError) as exc:
                self._submit_singly(batch, exc)
                return
            left = set(refused)
            taken = (files for position, (files, _) in enumerate(batch) if position not in left)
            for files, job in zip(taken, jobs, strict=True):
                self._stored(job, files)
            batch = [batch[position] for position in refused]
            if full is not None:
                full_since = time.monotonic() if jobs or full_since is None else full_since
                self._make_room(full, full_since)
            elif len(self._pending) >= WINDOW_JOBS:
                self._collect(WINDOW_JOBS // 2)

    def _submit_singly(self, batch: Sequence[Loaded], error: InputError | WireError) -> None:
        """Finds the jobs of a refused batch that are to blame."""
        if len(batch) == 1:
            self._fail(error, batch[0][0])
        elif isinstance(error, InputError):
            for one in batch:
                self._submit([one])
        else:
            # Some may have been stored: they must not be stored again.
            raise error

    def _stored(self, job: Job, files: JobFiles) -> None:
        self._tell_stored(job)
        if self._wait:
            self._pending[job] = files
        else:
            self._tick()

    def _make_room(self, full: QueueFull, since: float) -> None:
        if self._pending:
            self._collect(len(self._pending) // 2)
            return
        if time.monotonic() - since > STUCK_S and self._client.queue_length(self._model) == 0:
            raise full
        time.sleep(PAUSE_S)

    def _collect(self, down_to: int) -> None:
        """Takes results until at most ``down_to`` jobs are under way."""
        if len(self._pending) <= down_to:
            return
        for job in self._client.as_completed(list(self._pending)):
            files = self._pending.pop(job)
            self._results.take(job, files.name, str(files))
            self._tick()
            if len(self._pending) <= down_to:
                return

    def _fail(self, error: Exception, files: JobFiles | None = None) -> None:
        # The SDK's word for what is a flag here.
        words = str(error).replace("cast=True", "--cast")
        self._results.fail(words, str(files) if files is not None else "")
        self._tick()
