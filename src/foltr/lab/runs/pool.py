"""Runs many settings in parallel: worker processes share the memory-mapped data and report progress.

Yields events, from which the caller draws its bars. Closing the generator stops the workers; finished runs stay on
disk.
"""

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from foltr.errors import FoltrError, SpecError
from foltr.lab.runs import on_texts, store
from foltr.lab.runs.keys import code_of
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation import population
from foltr.lab.simulation.evaluation import Progress, RunResult
from foltr.lab.spec.setting import AnySetting, TextSetting, resolved, stored


class Job(NamedTuple):
    """One single run that is to be made."""

    number: int
    setting: AnySetting
    fold: int
    seed: int
    key: str


class JobProgress(NamedTuple):
    """`done`: the run is on disk; otherwise some interactions more, with their mean online nDCG@10."""

    job: int
    interactions: int
    quality: float
    done: bool = False


_words: Any = None  # of a worker process: where its ticks go


def run_jobs(jobs: list[Job], out: Path, *, processes: int, threads: int) -> Iterator[JobProgress]:
    """Runs all jobs and stores their results."""
    if processes == 1:
        for job in jobs:
            yield from _one(job, out, threads)
            yield JobProgress(job.number, 0, 0.0, done=True)
        return
    # a worker does its sums alone: more threads than cores would only get in each other's way
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    words = context.Queue()
    pool = ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(words,))
    try:
        ended: queue.SimpleQueue[Future[None]] = queue.SimpleQueue()  # asking thousands of futures takes its time
        with _no_ctrl_c():
            waiting = {pool.submit(_in_worker, _sent(job), out, threads): job for job in jobs}
        for future in waiting:
            future.add_done_callback(ended.put)
        while waiting:
            yield from _heard(words)
            with contextlib.suppress(queue.Empty):
                future = ended.get(timeout=0.1)
                _result(future)
                yield from _heard(words)
                yield JobProgress(waiting.pop(future).number, 0, 0.0, done=True)
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        words.close()


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Processes begun here never hear Ctrl-C, not even while they start; we hear it once all have begun."""
    heard: list[int] = []
    ours = [signal.SIGINT, signal.SIGTERM] if threading.current_thread() is threading.main_thread() else []
    before = {one: signal.signal(one, lambda number, _: heard.append(number)) for one in ours}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for one, handler in before.items():
            signal.signal(one, handler)
    if heard:
        raise KeyboardInterrupt


def _result(future: "Future[None]") -> None:
    try:
        future.result()
    except BrokenProcessPool:
        raise FoltrError(
            "a worker process ended without a word, as happens when memory runs out; finished single runs are kept: "
            "run again, with fewer --jobs if it happens again"
        ) from None


def _heard(words: Any) -> Iterator[JobProgress]:
    while True:
        try:
            yield words.get_nowait()
        except queue.Empty:
            return


def _begin(words: Any) -> None:
    global _words
    _words = words
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot end us."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Sent(NamedTuple):
    """A job as plain data: a worker process does not know the classes of plug-ins before it has loaded them."""

    number: int
    setting: dict[str, Any]
    code: str
    fold: int
    seed: int
    key: str


def _sent(job: Job) -> _Sent:
    plugins = getattr(job.setting, "plugins", ())
    return _Sent(job.number, resolved(job.setting), code_of(job.setting) if plugins else "", *job[2:])


def _in_worker(sent: _Sent, out: Path, threads: int) -> None:
    setting = stored(sent.setting)
    if sent.code and code_of(setting) != sent.code:
        raise SpecError("plugins: a file was edited after this run began; run the same command again")
    for event in _one(Job(sent.number, setting, *sent[3:]), out, threads):
        _words.put(event)


def _one(job: Job, out: Path, threads: int) -> Iterator[JobProgress]:
    """Ticks of one job, put together so that there are not too many; the result goes to disk."""
    waiting, total, last = 0, 0.0, 0
    for word in _work(job, threads):
        if isinstance(word, RunResult):
            store.save(out, job.key, word)
            continue
        assert isinstance(word, Progress)
        waiting, total, last = waiting + word.interactions, total + word.quality, last + 1
        if waiting >= _WORD:
            yield JobProgress(job.number, waiting, total / last)
            waiting, total, last = 0, 0.0, 0
    yield JobProgress(job.number, waiting, total / max(last, 1))


def _work(job: Job, threads: int) -> Iterator[Progress | RunResult]:
    if isinstance(job.setting, TextSetting):
        return on_texts.run_setting(job.setting, job.seed)
    return run_setting(job.setting, population.load(job.setting.data, job.fold), job.seed, threads)


_WORD = 40_000  # interactions between two words: several a second
