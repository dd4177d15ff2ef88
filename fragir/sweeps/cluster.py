"""Tasks on a Dask cluster: workers of this machine, or a cluster that Dask's own tools started."""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import Any, cast

from fragir.errors import FragirError
from fragir.sweeps import catalogue
from fragir.sweeps.catalogue import SweepSource
from fragir.sweeps.definition import Task
from fragir.sweeps.work import Limits, TaskOutcome, died_outcome, perform_on_worker, stuck_in

# Dask's own annotations leave the results of its synchronous clients open.
Client = Any
Future = Any

#: A task that has taken so many workers with it is given up.
DEATHS = 3
#: Seconds to wait for a scheduler, and for its first worker.
PATIENCE = 15
_CONFIG = {
    "distributed.scheduler.allowed-failures": DEATHS - 1,
    # A worker has one task at a time, so that its death is no other's fault.
    "distributed.scheduler.worker-saturation": 1.0,
    # Results are small: a worker near its limit of memory has a task that takes too much.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.profile.enabled": False,
    # Every core has a worker.
    "distributed.nanny.environ.FRAGIR_JOBS": 1,
    # A task that keeps Python's lock for minutes is ended by its limit, not its worker given up.
    "distributed.scheduler.worker-ttl": None,
}


@dataclass(frozen=True)
class Pool:
    """Where tasks run."""

    client: Client
    local: bool

    def perform(
        self, source: SweepSource, tasks: Sequence[Task], limits: Limits
    ) -> Iterator[TaskOutcome]:
        """Runs tasks; outcomes come as they are done. FragirError where the cluster is lost."""
        if not self.local:
            yield from self._perform(source, tasks, limits)
            return
        with tempfile.TemporaryDirectory(prefix="fragir-sweep-") as folder:
            yield from self._perform(source, tasks, replace(limits, folder=folder))

    def _perform(
        self, source: SweepSource, tasks: Sequence[Task], limits: Limits
    ) -> Iterator[TaskOutcome]:
        from distributed import as_completed

        threads: dict[str, int] = self.client.nthreads()
        alone = all(count == 1 for count in threads.values())
        group = f"sweep-{uuid.uuid4().hex}"
        waiting = iter(tasks)
        asked: dict[tuple[str, int], Task] = {}

        def submit(task: Task) -> Future:
            asked[group, task.index] = task
            return self.client.submit(
                perform_on_worker,
                *(source, task, limits, alone),
                key=(group, task.index),
                pure=False,
            )

        # Not all at once: a scheduler keeps a few kilobytes of every task.
        window = max(256, 8 * sum(threads.values()))
        first = [submit(task) for task in islice(waiting, window)]
        running: Any = as_completed(first)
        for future in running:
            if future.status in ("lost", "pending"):
                running.add(future)  # its worker died before the result was here: computed again
                continue
            task = asked.pop(future.key)
            yield self._outcome(future, task, limits)
            future.release()
            following = next(waiting, None)
            if following is not None:
                running.add(submit(following))

    def _outcome(self, future: Future, task: Task, limits: Limits) -> TaskOutcome:
        from distributed import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status == "cancelled":
            raise FragirError("the scheduler is gone", hint="--resume FILE goes on")
        error = future.exception()
        if not isinstance(error, KilledWorker):
            return died_outcome(
                task, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            )
        stuck = stuck_in(limits.folder, task.index)
        if stuck is not None:
            limit = f"{limits.seconds:g} s"
            return died_outcome(task, f"KilledWorker: over the time limit of {limit}, in {stuck}")
        reason = f"{DEATHS} workers died of it" if self.local else "workers died of it"
        return died_outcome(
            task, f"KilledWorker: {reason}: memory, a crash, or killed from outside"
        )


@contextmanager
def local(workers: int, memory: int) -> Generator[Pool]:
    """A cluster of processes on this machine, of one thread each; `memory`: bytes of a worker."""
    dask = _dask()
    import distributed

    with dask.config.set(_CONFIG), tempfile.TemporaryDirectory(prefix="fragir-dask-") as folder:
        try:
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=memory,
                host="127.0.0.1",
                dashboard_address=cast(str, None),
                # Without a dashboard, too, the scheduler serves HTTP, at a port that only one
                # cluster of a machine can have (distributed.node): here at any free one.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
        except (OSError, RuntimeError) as error:
            raise FragirError(f"no workers can be started: {error}", hint="--serial") from error
        with cluster, distributed.Client(cluster) as client:
            yield Pool(client, local=True)


@contextmanager
def remote(scheduler: str, source: SweepSource) -> Generator[Pool]:
    """A cluster that somebody has started. Its workers must have the same sweep."""
    dask = _dask()
    import distributed

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.comm.timeouts.connect": PATIENCE}):
        try:
            client: Client = distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise FragirError(
                f"no scheduler of Dask answers at {scheduler}",
                hint="`dask scheduler` starts one and prints its address, as in "
                "tcp://192.0.2.1:8786; docs/sweeps.md",
            ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise FragirError(
                f"the scheduler at {scheduler} has no workers",
                hint=f"start some with `dask worker {scheduler} --nthreads 1`",
            ) from error
        _check_workers(client, source)
        yield Pool(client, local=False)


def _check_workers(client: Client, source: SweepSource) -> None:
    """Raises FragirError where a worker cannot run the sweep."""
    answers: dict[str, Any] = client.run(_why_not, source, on_error="return")
    for worker, answer in answers.items():
        if answer is None:
            continue
        if isinstance(answer, ModuleNotFoundError):
            reason, hint = f"has no module {answer.name}", "install fragir[sweep] there"
        else:
            reason, hint = f"cannot run this sweep: {answer}", None
        raise FragirError(f"the worker {worker} {reason}", hint=hint)


def _why_not(source: SweepSource) -> str | None:
    try:
        catalogue.load(source)
    except FragirError as error:
        return str(error)
    return None


def _dask() -> Any:
    try:
        dask = import_module("dask")
        import_module("distributed")  # adds its settings to Dask's
    except ImportError as error:
        raise FragirError(
            "workers need dask.distributed, which is not installed",
            hint="pip install 'fragir[sweep]', or --serial",
        ) from error
    return dask
