"""The tasks of the site that the tests run."""

import asyncio
import datetime
import os
import pathlib
import time

from django.tasks import task
from threadmill.exceptions import AcknowledgementTimeoutError
from threadmill.retry import ExponentialBackoff

import myretry

HERE = pathlib.Path(__file__).parent
QUICK = ExponentialBackoff(
    base_delay=datetime.timedelta(milliseconds=20),
    max_delay=datetime.timedelta(milliseconds=100),
    max_retries=5,
    expected_exceptions=(ValueError,),
)


class NoSuchOrder(ValueError):
    """An error of the site's own."""


def never(context):
    """A retry policy that is a function: it never grants one."""
    return None


def soon(context):
    """A retry policy that is a function: it always grants one."""
    return datetime.timedelta(milliseconds=20)


@task
def add(a, b):
    return a + b


@task
def echo(value):
    return value


@task
def keywords(*, name, greeting="hello", **others):
    return {"text": f"{greeting} {name}", "others": others}


@task
def boom(message):
    raise RuntimeError(message)


@task
def lost_order(number):
    try:
        {}[number]
    except KeyError as error:
        raise NoSuchOrder(f"no order {number}") from error


@task(takes_context=True, retry=QUICK)
def flaky(context, succeeds_at):
    """Fails until this attempt, with a retry soon after."""
    if context.attempt < succeeds_at:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task(takes_context=True, retry=soon)
def flaky_by_function(context, succeeds_at):
    if context.attempt < succeeds_at:
        raise RuntimeError(f"attempt {context.attempt}")
    return context.attempt


@task(takes_context=True)
def who(context):
    return {"id": context.task_result.id, "attempt": context.attempt}


@task
async def later(value):
    await asyncio.sleep(0)
    return value


@task
def slow(seconds):
    time.sleep(seconds)
    return seconds


@task
def hold(name):
    """Runs until the test releases it by this name."""
    (HERE / f"started-{name}").touch()
    while not (HERE / f"release-{name}").exists():
        time.sleep(0.01)
    return name


@task
def mark(text):
    """Leaves a line behind, so that a test can count how often it ran."""
    line = os.open(HERE / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(line, f"{text}\n".encode())
    os.close(line)
    return text


@task
def exit_now(code):
    """Ends the process that runs it."""
    os._exit(code)


# The names that the recorded states use, so that they can be read back and run.


@task(
    takes_context=True,
    retry=ExponentialBackoff(
        max_delay=datetime.timedelta(minutes=5),
        expected_exceptions=(ValueError, AcknowledgementTimeoutError),
    ),
)
def flaky_backoff(context, *args, **kwargs):
    raise ValueError(f"attempt {context.attempt}")


@task(takes_context=True, retry=myretry.up_to_three)
def flaky_custom(context, *args, **kwargs):
    raise ValueError(f"attempt {context.attempt}")


@task
def send_welcome_email(*args, **kwargs):
    return None


@task(takes_context=True)
def with_context(context, *args, **kwargs):
    return {"attempt": context.attempt, "args": args}
