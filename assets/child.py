"""Runs Django tasks for a supervisor that owns the queue.

The supervisor starts this script in an interpreter of the site, with a socket and a journal on inherited descriptors.
It sends tasks; this process imports them, calls them, and answers how each ended. Standard output and error stay the
tasks' own. Nothing here talks to the queue's server.

A frame is a length (4 bytes), a kind (1 byte), a number (8 bytes), all big-endian, and a payload of that length.

To the child                                      From the child
  C  configuration (JSON), first of all             H  hello (JSON): versions and the site's TASKS, or what went wrong
  R  run a task: RUN and its five texts             D  done: two times, the value as JSON
  F  flush, and give back what has not started      E  failed: two times, the error and the retry's verdict (JSON)
  V  verdict for an attempt that was cut off        U  not started after all: numbers
  Q  what the decorator says of a function          A  answer to V or Q (JSON)
  I  interrupt a task (its text as the message)     L  a log record (JSON)
  S  stop: finish what runs, then end

Answers wait in the journal, a shared file, until there are enough or nothing else is to be done. A process that dies
takes neither the answers in it nor the knowledge of what it was running with it.
"""

import contextlib
import contextvars
import ctypes
import faulthandler
import importlib
import io
import json
import logging
import mmap
import os
import queue
import signal
import struct
import sys
import sysconfig
import threading
import time
import traceback
import warnings
from inspect import iscoroutinefunction

HEADER = struct.Struct(">IBQ")
RUN = struct.Struct(">BIIIII")
TIMES = struct.Struct(">dd")
# The journal: where its text belongs in the stream of answers, how long it is, then a slot for each thread.
JOURNAL = struct.Struct("=QQ")
SLOT = struct.Struct("=dQ")
# Answers that are older than this, in seconds, do not wait for more.
PATIENCE = 0.001
# A kept task definition is dropped with all others when there are this many.
MOST_DEFINITIONS = 1000

PR_SET_PDEATHSIG = 1
DONE, FAILED = ord("D"), ord("E")
TAKES_CONTEXT, RETRY_CALLBACK, RETRY_BACKOFF = 1, 2, 4

dumps = json.JSONEncoder().encode
loads = json.JSONDecoder().decode
now = time.time


class Channel:
    """The socket to the supervisor and the journal before it."""

    def __init__(self, connection, journal, threads):
        self.connection = connection
        self.journal = journal
        self.data = JOURNAL.size + SLOT.size * threads
        self.room = len(journal) - self.data
        self.base = self.used = 0
        self.flushed = now()
        self.lock = threading.Lock()

    def begin(self, slot, number, started):
        """Notes which task a thread runs, where it outlives this process."""
        SLOT.pack_into(self.journal, JOURNAL.size + SLOT.size * slot, started, number)

    def send(self, kind, number, payload, at_once=False):
        frame = HEADER.pack(len(payload), kind, number) + payload
        with self.lock:
            if self.used + len(frame) > self.room:
                self._flush()
            if len(frame) > self.room:
                self.connection.sendall(frame)
                self.base += len(frame)
                return
            start = self.data + self.used
            self.journal[start : start + len(frame)] = frame
            # Only now, as the length makes the text count.
            self.used += len(frame)
            JOURNAL.pack_into(self.journal, 0, self.base, self.used)
            if at_once or now() - self.flushed > PATIENCE:
                self._flush()

    def flush(self):
        with self.lock:
            self._flush()

    def _flush(self):
        if self.used:
            view = memoryview(self.journal)[self.data : self.data + self.used]
            self.connection.sendall(view)
            view.release()
            self.base += self.used
            self.used = 0
            JOURNAL.pack_into(self.journal, 0, self.base, 0)
        self.flushed = now()


class TaggedStream(io.TextIOWrapper):
    """Standard output or error: each line that a task writes begins with a mark of whose it is."""

    def write(self, text):
        owner = getattr(running, "owner", "")
        if owner and text:
            start = "" if getattr(running, self.name_of_middle, False) else owner
            setattr(running, self.name_of_middle, not text.endswith("\n"))
            body = text[:-1].replace("\n", "\n" + owner) + text[-1]
            super().write(start + body)
            return len(text)
        return super().write(text)

    @classmethod
    def over(cls, stream, name):
        """Takes the place of a standard stream, on its descriptor."""
        stream.flush()
        tagged = cls(
            stream.buffer, encoding=stream.encoding, errors="backslashreplace", line_buffering=True, write_through=True
        )
        tagged.name_of_middle = "middle_of_" + name
        return tagged


class SupervisorHandler(logging.Handler):
    """Hands log records to the supervisor, which writes them beside its own."""

    def __init__(self, channel, level):
        super().__init__(level)
        self.channel = channel
        self.formatter = logging.Formatter()

    def emit(self, record):
        try:
            owner = getattr(running, "owner", "").strip(MARK).split(MARK)
            entry = {"level": record.levelname, "number": record.levelno, "logger": record.name}
            entry["message"] = record.getMessage()
            if record.exc_info and record.exc_info[0]:
                entry["exception"] = self.formatter.formatException(record.exc_info)
            if len(owner) == 2:
                entry["task"], entry["queue"] = owner
            self.channel.send(ord("L"), 0, dumps(entry).encode())
        except Exception:
            self.handleError(record)


# Around a task's id and its queue, at the head of a line of output.
MARK = "\x1f"
running = threading.local()


def import_string(path):
    """The attribute that a dotted path names."""
    module, dot, name = path.rpartition(".")
    if not dot:
        raise ImportError(f"{path!r} names no module and function")
    found = sys.modules.get(module)
    # While another thread imports it, only the import system knows when it is complete.
    if found is None or getattr(getattr(found, "__spec__", None), "_initializing", False):
        found = importlib.import_module(module)
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise ImportError(f"module {module!r} has no attribute {name!r}") from error


class Site:
    """The Django site: its settings, its tasks, who listens to its signals."""

    def __init__(self, config, channel):
        self.config = config
        self.channel = channel
        self.functions = {}
        self.definitions = {}
        self.gil_warning = None
        self.listeners = None
        self.audible_until = 0.0
        self.audible = True

    # Starting up.

    def load(self):
        """Imports the site as its manage.py does."""
        directory = self.config["directory"]
        if sys.path and sys.path[0] == "":
            del sys.path[0]
        sys.path.insert(0, directory)
        if self.config.get("settings"):
            os.environ["DJANGO_SETTINGS_MODULE"] = self.config["settings"]
        show = warnings.showwarning

        def watch(message, *args, **kwargs):
            if "global interpreter lock" in str(message):
                self.gil_warning = str(message)
            show(message, *args, **kwargs)

        warnings.showwarning = watch
        manage = os.path.join(directory, "manage.py")
        if os.path.exists(manage):
            self.run_manage(manage)
        import django

        django.setup()
        from django.conf import settings
        from django.db import close_old_connections
        from django.tasks import base, signals, task_backends
        from django.utils import json as django_json

        self.debug = settings.DEBUG
        self.base, self.signals, self.backends = base, signals, task_backends
        self.normalize, self.close_connections = django_json.normalize_json, close_old_connections
        self.logger = logging.getLogger("django.tasks")
        self.own_receivers = [signals.log_task_started, signals.log_task_finished]
        close = getattr(sys.modules.get("threadmill.signals"), "close_task_database_connection", None)
        if close is not None:
            self.own_receivers.append(close)
        self.sender = Site
        with contextlib.suppress(ImportError):
            # Receivers may have asked for signals of the package's own class.
            self.sender = import_string("threadmill.executor.TaskExecutor")
        self.Result = base.TaskResult
        with contextlib.suppress(ImportError):
            self.Result = import_string("threadmill.backends.base.ThreadmillTaskResult")
        if not logging.root.handlers:
            logging.root.addHandler(SupervisorHandler(self.channel, self.config.get("log_level", "INFO")))

    def run_manage(self, path):
        """Lets manage.py set up what it sets up, but runs no command."""
        import runpy

        from django.core import management

        execute, argv = management.execute_from_command_line, sys.argv
        management.execute_from_command_line = lambda argv=None: None
        sys.argv = [path, "threadmill"]
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        finally:
            management.execute_from_command_line, sys.argv = execute, argv

    def hello(self):
        """Versions and the site's TASKS. Every backend is made, so that a wrong setting shows now."""
        import django

        aliases = {}
        for alias in self.backends.settings:
            params = self.backends.settings[alias]
            backend = self.backends[alias]
            aliases[alias] = {
                "backend": params["BACKEND"],
                "redis_url": getattr(backend, "redis_url", None) or params.get("REDIS_URL"),
                "queues": list(params.get("QUEUES", [self.base.DEFAULT_TASK_QUEUE_NAME])),
                "options": {str(name): plain(value) for name, value in params.get("OPTIONS", {}).items()},
            }
        try:
            from importlib.metadata import version

            threadmill = version("threadmill")
        except ImportError:
            threadmill = None
        return {
            "python": sys.version.split()[0],
            "django": django.get_version(),
            "threadmill": threadmill,
            "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            "gil": sys._is_gil_enabled() if hasattr(sys, "_is_gil_enabled") else True,
            "gil_warning": self.gil_warning,
            "settings": os.environ.get("DJANGO_SETTINGS_MODULE"),
            "aliases": aliases,
        }

    # Tasks.

    def function(self, path):
        """The task's function, whether it is a coroutine function, and its path for the log."""
        found = self.functions.get(path)
        if found is None:
            task = import_string(path)
            # What a record names is only called where the site has declared it as a task.
            if not isinstance(task, self.base.Task):
                raise TypeError(f"{path!r} is not a task: it is not decorated with @task")
            found = self.functions[path] = (task.func, iscoroutinefunction(task.func), task.module_path)
        return found

    def definition(self, path, spec):
        """The Task of a record, with the retry policy that is stored in it."""
        key = dumps(spec)
        task = self.definitions.get(key)
        if task is None:
            if len(self.definitions) >= MOST_DEFINITIONS:
                self.definitions.clear()
            task = self.definitions[key] = self.restore(path, spec)
        return task

    def restore(self, path, spec):
        try:
            # The package itself knows best how it stores a task; no user data is in this record.
            return self.backends[spec["backend"]].deserialize_task_result(dumps({
                "task": spec, "id": "", "status": "READY", "enqueued_at": None, "started_at": None,
                "finished_at": None, "last_attempted_at": None, "args": [], "kwargs": {},
                "backend": spec["backend"], "errors": [], "worker_ids": [], "_return_value": None,
            })).task  # fmt: skip
        except Exception:
            # Not its backend, or a queue or a retry that this site does not know: then without a retry.
            task = import_string(path)
            copy = object.__new__(type(task))
            for name in type(task).__dataclass_fields__:
                object.__setattr__(copy, name, getattr(task, name, None))
            for name in ("priority", "backend", "queue_name", "takes_context"):
                object.__setattr__(copy, name, spec[name])
            object.__setattr__(copy, "run_after", moment(spec["run_after"]))
            if hasattr(copy, "retry") and spec.get("retry") is not None:
                logging.getLogger("threadmill").exception("The retry policy of task %s cannot be used", path)
                object.__setattr__(copy, "retry", None)
            return copy

    def result(self, path, record, started):
        """The record of an attempt that began as the TaskResult that it is for Django."""
        error = self.base.TaskError
        return self.Result(
            task=self.definition(path, record["task"]),
            id=record["id"],
            status=self.base.TaskResultStatus.RUNNING,
            enqueued_at=moment(record["enqueued_at"]),
            started_at=started,
            finished_at=None,
            last_attempted_at=started,
            args=record["args"],
            kwargs=record["kwargs"],
            backend=record["backend"],
            errors=[error(exception_class_path=e["exception_class_path"], traceback=e["traceback"])
                    for e in record["errors"]],  # fmt: skip
            worker_ids=list(record["worker_ids"]),
        )

    def text_of(self, value):
        """A return value as it is stored; raises where it cannot be."""
        kind = type(value)
        if value is None:
            return b"null"
        if kind is str or kind is int or kind is bool or kind is float:
            return dumps(value).encode()
        value = self.normalize(value)
        text = dumps(value).encode()
        if b'"task": {' in text and b'"func": ' in text and looks_like_a_task(value):
            raise ValueError(
                "the return value holds an object whose key 'task' is an object with a key 'func'; "
                "readers of the result would take it for a task of their own"
            )
        return text

    # Retries.

    def verdict(self, result):
        """What the task's retry policy says of a failed attempt: the delay in seconds, or None."""
        retry = getattr(result.task, "retry", None)
        if retry is None:
            return None
        try:
            delay = retry(self.base.TaskContext(task_result=result))
            return None if delay is None else max(delay.total_seconds(), 0.0)
        except Exception:
            logging.getLogger("threadmill.backends.base").exception(
                "Retry callback failed for task '%s@%s'", result.id, result.task.module_path
            )
            return None

    def decide(self, request):
        """The verdict for an attempt that did not end here."""
        record = request["record"]
        result = self.result(record["task"]["func"], record, moment(record["started_at"]))
        self.fail(result, request["error"]["exception_class_path"], request["error"]["traceback"], now())
        delay = self.verdict(result)
        return {"retry": delay}

    def fail(self, result, class_path, text, finished):
        result.errors.append(self.base.TaskError(exception_class_path=class_path, traceback=text))
        object.__setattr__(result, "finished_at", utc(finished))
        object.__setattr__(result, "status", self.base.TaskResultStatus.FAILED)

    def describe(self, path):
        """What the decorator says of a function."""
        self.function(path)
        task = import_string(path)
        retry = None
        if getattr(task, "retry", None) is not None:
            empty = {"task": task, "id": "", "status": self.base.TaskResultStatus.READY, "args": [], "kwargs": {}}
            empty |= dict.fromkeys(("enqueued_at", "started_at", "finished_at", "last_attempted_at"))
            result = self.Result(**empty, backend=task.backend, errors=[], worker_ids=[])
            retry = loads(self.backends[task.backend].serialize_task_result(result))["task"]["retry"]
        return {
            "func": task.module_path,
            "backend": task.backend,
            "queue": task.queue_name,
            "priority": task.priority,
            "takes_context": task.takes_context,
            "retry": retry,
        }

    # Signals.

    def listened_to(self):
        """Whether the signals have receivers of the site's own."""
        started, finished = self.signals.task_started.receivers, self.signals.task_finished.receivers
        known = self.listeners
        if known is None or known[0] != started or known[1] != finished:
            foreign = any(
                receiver not in self.own_receivers
                for signal_ in (self.signals.task_started, self.signals.task_finished)
                for receivers in signal_._live_receivers(self.sender)
                for receiver in receivers
            )
            known = self.listeners = (list(started), list(finished), foreign)
        return known[2]

    def announce(self, signal_, result):
        """Sends a signal; receivers that fail are logged and harm nothing."""
        try:
            signal_.send_robust(self.sender, task_result=result)
        except BaseException:
            logging.getLogger("django.dispatch").exception("A receiver of a task's signal failed")

    def close_old_connections(self):
        try:
            self.close_connections()
        except Exception:
            logging.getLogger("threadmill").exception("Closing old database connections failed")

    def log_is_audible(self):
        """Whether a record at INFO of Django's log for tasks would be written by anybody."""
        if now() > self.audible_until:
            self.audible = self._audible()
            self.audible_until = now() + 0.5
        return self.audible

    def _audible(self):
        from django.utils.log import RequireDebugTrue

        logger = self.logger
        if not logger.isEnabledFor(logging.INFO):
            return False
        while logger:
            for handler in logger.handlers:
                silenced = not self.debug and any(isinstance(f, RequireDebugTrue) for f in handler.filters)
                if handler.level <= logging.INFO and not silenced and not isinstance(handler, logging.NullHandler):
                    return True
            logger = logger.parent if logger.propagate else None
        return False


class Sketch:
    """As much of a TaskResult as Django's own log receivers read."""

    __slots__ = ("id", "module_path", "status")

    def __init__(self, id, module_path, status):
        self.id, self.module_path, self.status = id, module_path, status

    @property
    def task(self):
        return self


class Worker(threading.Thread):
    """Runs one task after the other."""

    def __init__(self, slot, site, channel, tasks, context):
        super().__init__(name=f"threadmill-{slot}", daemon=True)
        self.slot, self.site, self.channel, self.tasks = slot, site, channel, tasks
        self.base_context = context
        self.runner = None
        # Which task may be interrupted now, and with which message one was.
        self.lock = threading.Lock()
        self.current = None
        self.interrupted = None

    def run(self):
        try:
            self.work()
        except BaseException:
            # Not a task's failure, all of those are caught: a thread that cannot answer is a process that cannot work.
            traceback.print_exc(file=sys.__stderr__)
            os._exit(70)

    def work(self):
        take, take_now = self.tasks.get, self.tasks.get_nowait
        while True:
            try:
                job = take_now()
            except queue.Empty:
                self.channel.flush()
                job = take()
            if job is None:
                break
            # A copy for each task: what it sets in a ContextVar (the language, the time zone) ends with it.
            self.base_context.copy().run(self.execute, *job)
        if self.runner is not None:
            self.runner.close()
        self.site.close_old_connections()
        self.channel.flush()

    def execute(self, number, payload):
        flags, id_end, queue_end, path_end, args_end, kwargs_end = RUN.unpack_from(payload)
        body = payload[RUN.size :]
        id, queue_name, path = (
            body[:id_end].decode(),
            body[id_end:queue_end].decode(),
            body[queue_end:path_end].decode(),
        )
        attempt = Attempt(self, number, id, path, flags, body[kwargs_end:])
        running.owner = f"{MARK}{id}{MARK}{queue_name}{MARK}{MARK}"
        started = now()
        self.channel.begin(self.slot, number, started)
        attempt.begin(started)
        try:
            try:
                self.arm(number)
                text = attempt.call(body[path_end:args_end], body[args_end:kwargs_end])
            finally:
                self.disarm()
        except BaseException as error:
            # In here, as receivers read the exception that is being handled.
            self.explain(error)
            answer = attempt.fail(error)
        else:
            answer = None
        if answer is None:
            attempt.succeed(text)
        else:
            attempt.answer_failure(answer)
        running.owner = ""

    # Interruption.

    def arm(self, number):
        if self.site.config.get("interruptible"):
            with self.lock:
                self.current, self.interrupted = number, None

    def disarm(self):
        if self.current is not None:
            with self.lock:
                self.current = None
                if self.interrupted:
                    # Where it has not been raised yet, it never will be.
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), None)

    def interrupt(self, number, message):
        with self.lock:
            if self.current == number and not self.interrupted:
                self.interrupted = message
                kind = ctypes.py_object(TimeoutError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), kind)

    def explain(self, error):
        """What is raised in another thread has no message of its own."""
        if self.interrupted and type(error) is TimeoutError and not error.args:
            error.args = (self.interrupted,)

    def run_coroutine(self, coroutine):
        import asyncio

        if self.runner is None:
            self.runner = asyncio.Runner()
        loop = self.runner.get_loop()
        try:
            return self.runner.run(coroutine, context=contextvars.copy_context())
        finally:
            left = asyncio.all_tasks(loop)
            if left:
                for task in left:
                    task.cancel()
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


class Attempt:
    """One attempt of one task."""

    __slots__ = ("worker", "site", "number", "id", "path", "flags", "record", "started", "finished", "result", "label",
                 "listened")  # fmt: skip

    def __init__(self, worker, number, id, path, flags, record):
        self.worker, self.site, self.number = worker, worker.site, number
        self.id, self.path, self.flags, self.record = id, path, flags, record
        self.result, self.label, self.listened = None, path, False

    def begin(self, started):
        """Tells who listens that the task starts; nothing here is the task's failure."""
        site, self.started = self.site, started
        try:
            self.label = site.function(self.path)[2]
        except BaseException:
            # Raised again, and reported, by the call.
            return
        self.listened = site.listened_to()
        if self.listened:
            try:
                self.full_result()
            except BaseException:
                logging.getLogger("threadmill").exception("The TaskResult of task %s cannot be made", self.id)
                self.listened = False
        if self.listened:
            site.announce(site.signals.task_started, self.result)
        else:
            if site.log_is_audible():
                self.log(site.signals.log_task_started, site.base.TaskResultStatus.RUNNING)
            site.close_old_connections()

    def full_result(self):
        if self.result is None:
            self.result = self.site.result(self.path, loads(self.record.decode()), utc(self.started))
        return self.result

    def call(self, args, kwargs):
        """Calls the function and returns the text of its value."""
        function, is_coroutine, _ = self.site.function(self.path)
        args = loads(args.decode()) if args != b"[]" else ()
        kwargs = loads(kwargs.decode()) if kwargs != b"{}" else {}
        if self.flags & TAKES_CONTEXT:
            args = (self.site.base.TaskContext(task_result=self.full_result()), *args)
        value = function(*args, **kwargs)
        if is_coroutine:
            value = self.worker.run_coroutine(value)
        text = self.site.text_of(value)
        limit = self.site.config["largest_value"]
        if len(text) > limit:
            raise ValueError(f"the return value takes {len(text)} bytes; at most {limit} are stored")
        return text

    def succeed(self, text):
        finished, site = now(), self.site
        if self.listened:
            object.__setattr__(self.result, "_return_value", loads(text.decode()))
            object.__setattr__(self.result, "finished_at", utc(finished))
            object.__setattr__(self.result, "status", site.base.TaskResultStatus.SUCCESSFUL)
            site.announce(site.signals.task_finished, self.result)
        else:
            if site.log_is_audible():
                self.log(site.signals.log_task_finished, site.base.TaskResultStatus.SUCCESSFUL)
            site.close_old_connections()
        self.worker.channel.send(DONE, self.number, TIMES.pack(self.started, finished) + text)

    def fail(self, error):
        """Tells who listens that the attempt has failed; returns how, for the supervisor."""
        self.finished = now()
        class_path, text = describe_error(error)
        self.finish_failed(class_path, text, self.finished)
        decides = self.python_decides(error)
        return {"error": {"exception_class_path": class_path, "traceback": text}} | ({"retry": None} if decides else {})

    def answer_failure(self, answer):
        if "retry" in answer:
            try:
                if self.result is None:
                    self.fail_result(*answer["error"].values(), self.finished)
                answer["retry"] = self.site.verdict(self.result)
            except BaseException:
                logging.getLogger("threadmill").exception("The retry of task %s cannot be decided", self.id)
        payload = TIMES.pack(self.started, self.finished) + dumps(answer).encode()
        self.worker.channel.send(FAILED, self.number, payload)

    def finish_failed(self, class_path, text, finished):
        site = self.site
        if self.result is not None:
            self.fail_result(class_path, text, finished)
        if self.listened:
            site.announce(site.signals.task_finished, self.result)
        else:
            if site.logger.isEnabledFor(logging.ERROR):
                self.log(site.signals.log_task_finished, site.base.TaskResultStatus.FAILED)
            site.close_old_connections()

    def fail_result(self, class_path, text, finished):
        self.site.fail(self.full_result(), class_path, text, finished)

    def python_decides(self, error):
        """Whether the retry's verdict needs this interpreter; the supervisor knows Python's own exceptions."""
        if self.flags & RETRY_CALLBACK:
            return True
        return bool(self.flags & RETRY_BACKOFF) and type(error).__module__ != "builtins"

    def log(self, receiver, status):
        try:
            receiver(sender=None, task_result=Sketch(self.id, self.label, status))
        except Exception:
            logging.getLogger("threadmill").exception("The log of task %s failed", self.id)


def describe_error(error):
    """The class path and the traceback of a failure, without the frames of this script above the task's own."""
    kind = type(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:
        text = f"{kind.__module__}.{kind.__qualname__}: <its traceback cannot be written>\n"
    return f"{kind.__module__}.{kind.__qualname__}", text


def looks_like_a_task(value):
    """Whether an object in it has a key 'task' that is an object with a key 'func'."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            inner = value.get("task")
            if isinstance(inner, dict) and "func" in inner:
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def utc(seconds):
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def moment(text):
    import datetime

    return None if text is None else datetime.datetime.fromisoformat(text)


def plain(value):
    """A setting as JSON: a time span in seconds, what else is no JSON as its text."""
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    try:
        return loads(dumps(value))
    except (TypeError, ValueError):
        return repr(value)


class Reader:
    """Takes the supervisor's frames apart, on the main thread."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = bytearray()

    def frames(self):
        while True:
            yield from self.whole_frames()
            try:
                received = self.connection.recv(1 << 18)
            except InterruptedError:
                continue
            if not received:
                return
            self.buffer += received

    def whole_frames(self):
        view, at, size = bytes(self.buffer), 0, HEADER.size
        if len(view) >= size and len(view) < size + HEADER.unpack_from(view)[0]:
            # A long frame is still on its way.
            return
        while at + size <= len(view):
            length, kind, number = HEADER.unpack_from(view, at)
            if at + size + length > len(view):
                break
            # Forgotten before it is handed out: the next frame may only come after this one's answer.
            frame = view[at + size : at + size + length]
            at += size + length
            yield chr(kind), number, frame
        del self.buffer[:at]


def answer_aside(channel, number, work):
    """Answers on a thread of its own: what it calls is the site's, and may take its time."""

    def run():
        try:
            answer = work()
        except BaseException:
            answer = {"failed": traceback.format_exc()}
        channel.send(ord("A"), number, dumps(answer).encode(), at_once=True)

    threading.Thread(target=run, daemon=True).start()


def give_back(channel, tasks):
    """Takes out what no thread has begun, and says so."""
    numbers = []
    with contextlib.suppress(queue.Empty):
        while True:
            numbers.append(tasks.get_nowait()[0])
    channel.send(ord("U"), 0, b"".join(number.to_bytes(8, "big") for number in numbers), at_once=True)


def serve(reader, frames, site, channel, threads):
    """Works until told to stop, or until the supervisor is gone."""
    tasks = queue.SimpleQueue()
    context = contextvars.copy_context()
    workers = [Worker(slot, site, channel, tasks, context) for slot in range(threads)]
    for worker in workers:
        worker.start()
    for kind, number, payload in frames:
        if kind == "R":
            tasks.put((number, payload))
        elif kind == "F":
            give_back(channel, tasks)
        elif kind == "I":
            for worker in workers:
                worker.interrupt(number, payload.decode())
        elif kind == "V":
            answer_aside(channel, number, lambda request=payload: site.decide(loads(request.decode())))
        elif kind == "Q":
            answer_aside(channel, number, lambda path=payload.decode(): site.describe(path))
        elif kind == "S":
            break
    else:
        # Nobody is left to answer to.
        os._exit(1)
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join()


def die_with_the_supervisor():
    """Where the kernel offers it. Elsewhere, and before this, the end of the socket says it."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(connection, journal):
    connection.setblocking(True)
    die_with_the_supervisor()
    reader = Reader(connection)
    frames = reader.frames()
    _, _, payload = next(frames)
    config = loads(payload.decode())
    # Both are the supervisor's to act on; a handler, unlike SIG_IGN, is not inherited by what a task starts.
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: None)
    # A crash in C leaves the Python stack in the log.
    faulthandler.enable(sys.__stderr__)
    sys.stdout = TaggedStream.over(sys.stdout, "stdout")
    sys.stderr = TaggedStream.over(sys.stderr, "stderr")
    channel = Channel(connection, mmap.mmap(journal, 0), config["threads"])
    site = Site(config, channel)
    try:
        site.load()
        hello = site.hello()
    except BaseException:
        channel.send(ord("H"), 0, dumps({"failed": traceback.format_exc()}).encode(), at_once=True)
        return 1
    channel.send(ord("H"), 0, dumps(hello).encode(), at_once=True)
    serve(reader, frames, site, channel, config["threads"])
    return 0

