"""Runs the snippets of a test, one JSON string a line, and answers each with a line of JSON."""

import asyncio
import datetime
import json
import os
import sys
import traceback
import uuid

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

import django

django.setup()

import tasks
from django.tasks import TaskResultStatus, exceptions, task_backends

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
backend = task_backends["default"]


def view(result):
    """A task result as JSON."""
    done = result.status == TaskResultStatus.SUCCESSFUL
    return {
        "id": result.id,
        "function": result.task.module_path,
        "queue": result.task.queue_name,
        "priority": result.task.priority,
        "status": result.status.name,
        "args": result.args,
        "kwargs": result.kwargs,
        "value": result.return_value if done else None,
        "errors": [
            {"class": error.exception_class_path, "traceback": error.traceback}
            for error in result.errors
        ],
        "attempts": result.attempts,
        "worker_ids": list(result.worker_ids),
        "enqueued_at": result.enqueued_at,
        "started_at": result.started_at,
        "finished_at": result.finished_at,
        "last_attempted_at": result.last_attempted_at,
    }


def result(task_id):
    """What get_result says of a task, or None where it knows none."""
    try:
        return view(backend.get_result(task_id))
    except exceptions.TaskResultDoesNotExist:
        return None


def counts():
    """The counts that the inspector of the Python package shows."""
    stats = loop.run_until_complete(backend.queue_stats())
    return {
        name: {
            "ready": queue.counts.ready,
            "scheduled": queue.counts.deferred,
            "running": queue.counts.running,
            "successful": queue.counts.successful,
            "failed": queue.counts.failed,
        }
        for name, queue in stats.queues.items()
    }


def peek(queue, status, count=1000):
    """The tasks that the inspector of the Python package lists."""
    found = backend.peek(queue, status=TaskResultStatus[status], count=count)
    return [view(result) for result in found]


NAMES = {
    "asyncio": asyncio,
    "backend": backend,
    "counts": counts,
    "datetime": datetime,
    "peek": peek,
    "result": result,
    "run": loop.run_until_complete,
    "Status": TaskResultStatus,
    "tasks": tasks,
    "uuid": uuid,
    "view": view,
}

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    names = dict(NAMES)
    try:
        exec(compile(json.loads(line), "<snippet>", "exec"), names)
        answer = json.dumps({"out": names.get("out")}, default=str)
    except BaseException:
        answer = json.dumps({"error": traceback.format_exc()})
    answers.write(answer + "\n")
    answers.flush()
