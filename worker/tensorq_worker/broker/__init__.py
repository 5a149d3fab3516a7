"""The broker: everything between the worker and Redis, one Lua call an act."""

from tensorq_worker.broker.broker import Broker
from tensorq_worker.broker.claimed import Claimed, Want
from tensorq_worker.broker.finished import Finished, Outcome

__all__ = ["Broker", "Claimed", "Finished", "Outcome", "Want"]
