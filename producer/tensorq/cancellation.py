"""Cancelling a job: RQ's own cancel, and our input with it, in one transaction."""

from __future__ import annotations

from typing import cast

from redis import Redis
from redis.exceptions import WatchError
from rq.exceptions import InvalidJobOperation, NoSuchJobError
from rq.job import Job as RQJob
from rq.serializers import JSONSerializer

from tensorq import jobhash, keys
from tensorq.connection import watch_again
from tensorq.scripting import Script
from tensorq.status import from_rq

DONE_TTL_S = 3600
MOST_TRIES = 10
DISCARD = Script("tensorq", "discard")
_FIELDS = ["status", jobhash.MODEL, jobhash.CLIENT]


def cancel(redis: Redis, job_id: str) -> bool:
    """Cancels a job that waits or runs.

    A running job's tile goes on; its result is dropped when it ends.

    Args:
        redis: a connection that does not decode responses.
        job_id: the RQ job id.

    Returns:
        False where the job had ended already or is not there.
    """
    tries = lost = 0
    with redis.pipeline(transaction=True) as pipe:
        while True:
            tries += 1
            try:
                pipe.watch(keys.job(job_id))
                status, model, owner = cast(list[bytes | None], pipe.hmget(keys.job(job_id), _FIELDS))
                if from_rq(status).ended:
                    # Where the reply to a try was lost, it is that try that is seen here.
                    return lost > 0 and status == b"canceled"
                # RQ's default serializer would unpickle the job's meta.
                job = RQJob.fetch(job_id, connection=redis, serializer=JSONSerializer)
                pipe.multi()
                job.cancel(pipeline=pipe)
                if model is not None:
                    discard(pipe, job_id, model.decode(), (owner or b"").decode())
                pipe.execute()
            except WatchError as exc:
                lost = watch_again(exc, lost)
                continue
            except InvalidJobOperation:
                # RQ's word for a job that somebody else cancelled or deleted since it was looked at.
                if tries == MOST_TRIES:
                    raise
                pipe.reset()
                continue
            except ValueError:
                # RQ's word for an execution that ended, or lapsed, while it read a job's one by one.
                if tries == MOST_TRIES:
                    raise
                pipe.reset()
                _drop_lapsed(redis, job_id)
                continue
            except NoSuchJobError:
                return False
            return True


def _drop_lapsed(redis: Redis, job_id: str) -> None:
    """Takes executions that are no more out of the job's list of them, which would refuse every cancel."""
    listed = cast(list[bytes], redis.zrange(keys.EXECUTIONS + job_id, 0, -1))
    for execution in listed:
        if not redis.exists(keys.execution(job_id, execution.decode())):
            redis.zrem(keys.EXECUTIONS + job_id, execution)


def discard(pipe: Redis, job_id: str, model: str, owner: str) -> None:
    """Adds to a transaction: drop what is stored and counted as a job's input, and tell its client.

    Args:
        pipe: in MULTI.
        job_id: the RQ job id.
        model: the job's model.
        owner: whose completion list is told; empty for nobody's.
    """
    # EVAL, since a script that the server does not know fails alone inside MULTI.
    names = [keys.input(job_id), keys.inputs(model), keys.input_bytes(model), keys.done(owner)]
    pipe.eval(DISCARD.source, 4, *names, job_id, keys.DONE_LIMIT if owner else 0, DONE_TTL_S)
