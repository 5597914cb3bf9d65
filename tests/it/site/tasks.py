"""The tasks of the site that the tests run."""

import asyncio
import contextvars
import ctypes
import datetime
import logging
import os
import pathlib
import signal
import sys
import threading
import time

from django.tasks import task
from django.utils import timezone, translation
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


ON_LOST_ORDERS = ExponentialBackoff(
    base_delay=datetime.timedelta(milliseconds=20),
    max_delay=datetime.timedelta(milliseconds=20),
    max_retries=3,
    expected_exceptions=(KeyError, NoSuchOrder),
)
REMEMBERED = contextvars.ContextVar("remembered", default=0)


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


@task(retry=ON_LOST_ORDERS)
def lost_for_good(number):
    raise NoSuchOrder(f"no order {number}")


@task(retry=ON_LOST_ORDERS)
def lost_otherwise():
    raise RuntimeError("not an order")


@task(retry=never)
def once():
    raise ValueError("once")


def broken(context):
    """A retry policy that fails itself."""
    raise KeyError("policy")


@task(retry=broken)
def under_a_broken_policy():
    raise ValueError("under it")


def of_no_kind(context):
    """A retry policy that returns no span of time."""
    return 5


@task(retry=of_no_kind)
def under_a_policy_of_no_kind():
    raise ValueError("under it")


@task
def shaped():
    """What is no JSON until it is normalised."""
    return {"tuple": (1, b"two"), 3: None, None: True, b"bytes": {"range": range(2)}}


@task
async def later_boom(message):
    await asyncio.sleep(0)
    raise ValueError(message)


@task
async def which_loop():
    """Whether this loop has been seen before, and how many tasks it runs beside this one."""
    loop = asyncio.get_running_loop()
    seen = getattr(loop, "seen", False)
    loop.seen = True
    loop.create_task(asyncio.sleep(3600))
    return [seen, len(asyncio.all_tasks()) - 2]


@task
def grouped():
    raise ExceptionGroup("two", [ValueError("one"), NoSuchOrder("other")])


@task
def surrogates():
    raise ValueError("half \ud800 a pair")


@task
def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@task
def not_json():
    return object()


@task
def hostile():
    return [{"task": {"func": "os.getcwd"}}]


@task
def leaves():
    sys.exit(3)


class Odd(BaseException):
    def __str__(self):
        raise RuntimeError("no text")


@task
def odd():
    raise Odd


@task
def remembers():
    """What the last task in this thread has left in a ContextVar, the language and the time zone."""
    seen = [REMEMBERED.get(), translation.get_language(), timezone.get_current_timezone_name()]
    REMEMBERED.set(REMEMBERED.get() + 1)
    translation.activate("de")
    timezone.activate("Europe/Berlin")
    return seen


@task
def talks(text):
    print("printed", text)
    logging.getLogger("shop").warning("logged %s", text)
    os.write(1, f"raw {text}\n".encode())


@task
def kills_itself(name):
    if name == "segfault":
        ctypes.string_at(0)
    # To this thread, so that it does not go on before the signal has arrived.
    signal.pthread_kill(threading.get_ident(), getattr(signal, name))


@task
def closes_everything():
    """Closes every descriptor above the standard ones, the supervisor's among them, and goes on."""
    os.closerange(3, 256)
    return "closed"


@task
def waits_in_python(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    return seconds


@task
def which_process():
    return [os.getpid(), threading.current_thread().name]
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
