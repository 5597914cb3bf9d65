"""Tasks whose signals are heard by the site."""

import json
import pathlib
import sys

from django.tasks import task
from django.tasks.signals import task_finished, task_started

HERE = pathlib.Path(__file__).parent


def note(kind, sender, task_result):
    """What a receiver sees, without times and names of workers."""
    line = {
        "signal": kind,
        "sender": f"{sender.__module__}.{sender.__qualname__}",
        "class": type(task_result).__name__,
        "function": task_result.task.module_path,
        "status": task_result.status.name,
        "args": task_result.args,
        "kwargs": task_result.kwargs,
        "backend": task_result.backend,
        "queue": task_result.task.queue_name,
        "value": task_result._return_value,
        "errors": [error.exception_class_path for error in task_result.errors],
        "attempts": task_result.attempts,
        "has": [
            name
            for name in ("enqueued_at", "started_at", "finished_at", "last_attempted_at")
            if getattr(task_result, name) is not None
        ],
        "handled": sys.exc_info()[0].__name__ if sys.exc_info()[0] else None,
    }
    with open(HERE / "heard", "a") as heard:
        heard.write(json.dumps(line) + "\n")


def on_start(sender, task_result, **kwargs):
    note("started", sender, task_result)


def on_finish(sender, task_result, **kwargs):
    note("finished", sender, task_result)


def policy(context):
    note("retry", policy.__class__, context.task_result)
    return None


task_started.connect(on_start)
task_finished.connect(on_finish)


@task
def works(value):
    return [value]


@task(retry=policy)
def fails(**kwargs):
    raise LookupError("nothing")


@task(takes_context=True)
def sees(context):
    note("context", context.__class__, context.task_result)
    return context.attempt


@task
def breaks_its_receivers():
    def broken(sender, **kwargs):
        raise SystemExit("a receiver")

    task_finished.connect(broken, weak=False)
    return "fine"
