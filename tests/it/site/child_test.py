"""Tests of the script that runs in a child, by itself: without a supervisor, on a socket of the test's."""

import importlib.util
import io
import json
import logging
import mmap
import os
import socket
import struct
import sys
import tempfile
import threading
import unittest
from unittest import mock

spec = importlib.util.spec_from_file_location("threadmill_child", os.environ["CHILD_SCRIPT"])
child = importlib.util.module_from_spec(spec)
sys.modules["threadmill_child"] = child
spec.loader.exec_module(child)

RECORD = {
    "task": {"priority": 0, "backend": "default", "queue_name": "default", "run_after": None,
             "takes_context": False, "func": "tasks.add", "retry": None},
    "id": "01a", "status": "READY", "enqueued_at": "2026-11-30T19:39:30.881Z", "started_at": None,
    "finished_at": None, "last_attempted_at": None, "args": [1, 2], "kwargs": {}, "backend": "default",
    "errors": [], "worker_ids": ["w"], "_return_value": None,
}  # fmt: skip


def frames_of(data):
    found = []
    while data:
        length, kind, number = child.HEADER.unpack_from(data)
        found.append((chr(kind), number, data[child.HEADER.size : child.HEADER.size + length]))
        data = data[child.HEADER.size + length :]
    return found


class Wire:
    """A channel, and what comes out at its other end."""

    def __init__(self, room=4096):
        self.ours, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as file:
            file.truncate(child.JOURNAL.size + child.SLOT.size + room)
            self.journal = mmap.mmap(file.fileno(), 0)
        self.channel = child.Channel(theirs, self.journal, 1)
        self.ours.setblocking(False)

    def received(self):
        data = b""
        while True:
            try:
                data += self.ours.recv(1 << 20)
            except BlockingIOError:
                return frames_of(data)

    def held(self):
        base, used = child.JOURNAL.unpack_from(self.journal)
        start = child.JOURNAL.size + child.SLOT.size
        return base, frames_of(self.journal[start : start + used])


class ChannelTests(unittest.TestCase):
    def setUp(self):
        self.wire = Wire()
        # As if the last flush had just been.
        self.wire.channel.flushed = child.now() + 60

    def test_answers_wait_in_the_journal(self):
        self.wire.channel.send(ord("D"), 7, b"null")
        self.assertEqual(self.wire.received(), [])
        self.assertEqual(self.wire.held(), (0, [("D", 7, b"null")]))
        self.wire.channel.flush()
        self.assertEqual(self.wire.received(), [("D", 7, b"null")])
        self.assertEqual(self.wire.held(), (17, []))

    def test_old_answers_do_not_wait(self):
        self.wire.channel.flushed = 0
        self.wire.channel.send(ord("D"), 7, b"null")
        self.assertEqual(len(self.wire.received()), 1)

    def test_what_has_no_room_pushes_the_others_out(self):
        self.wire.channel.send(ord("D"), 1, b"null")
        self.wire.channel.send(ord("D"), 2, b"x" * 10000)
        self.wire.channel.send(ord("D"), 3, b"null")
        self.assertEqual([number for _, number, _ in self.wire.received()], [1, 2])
        self.assertEqual(self.wire.held(), (17 + 10013, [("D", 3, b"null")]))

    def test_the_journal_tells_what_runs(self):
        self.wire.channel.begin(0, 42, 1.5)
        self.assertEqual(struct.unpack_from("=dQ", self.wire.journal, child.JOURNAL.size), (1.5, 42))


class ReaderTests(unittest.TestCase):
    def test_frames_come_whole_however_they_are_cut(self):
        stream = b"".join(
            child.HEADER.pack(len(body), kind, number) + body
            for kind, number, body in [(ord("R"), 1, b"abc"), (ord("S"), 2, b""), (ord("R"), 3, b"x" * 500)]
        )
        expected = frames_of(stream)
        for step in (1, 7, 13, 100, len(stream)):
            ours, theirs = socket.socketpair()

            def send():
                for at in range(0, len(stream), step):
                    ours.send(stream[at : at + step])
                ours.close()

            threading.Thread(target=send).start()
            self.assertEqual(list(child.Reader(theirs).frames()), expected, step)


class PureTests(unittest.TestCase):
    def test_objects_that_would_be_taken_for_tasks(self):
        for value, expected in [
            ({"task": {"func": 1}}, True),
            ([{"a": [{"task": {"x": 1, "func": None}}]}], True),
            ({"task": {"a": {"func": 1}}}, False),
            ({"task": [{"func": 1}], "func": {}}, False),
            ("task func", False),
        ]:
            self.assertEqual(child.looks_like_a_task(value), expected, value)

    def test_a_traceback_begins_at_the_task(self):
        def task():
            raise ValueError("why")

        code = compile("def call(f): return f()", child.__file__, "exec")
        names = {}
        exec(code, names)
        try:
            names["call"](task)
        except ValueError as error:
            error.__traceback__ = error.__traceback__.tb_next
            path, text = child.describe_error(error)
        self.assertEqual(path, "builtins.ValueError")
        self.assertNotIn(child.__file__, text)
        self.assertIn("in task", text)
        self.assertTrue(text.endswith("ValueError: why\n"))

    def test_settings_as_json(self):
        import datetime

        self.assertEqual(child.plain(datetime.timedelta(seconds=90)), 90.0)
        self.assertEqual(child.plain({"a": (1,)}), {"a": [1]})
        self.assertEqual(child.plain({1j}), "{1j}")

    def test_lines_name_their_task(self):
        standard = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        stream = child.TaggedStream.over(standard, "test")
        print("before", file=stream)
        child.running.owner = "<"
        print("a\nb", "c", file=stream)
        print("d", end="", file=stream)
        print(file=stream)
        child.running.owner = ""
        print("after", file=stream)
        self.assertEqual(stream.buffer.getvalue().decode(), "before\n<a\n<b c\n<d\nafter\n")


class SiteTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wire = Wire(1 << 16)
        config = {"directory": os.getcwd(), "settings": "settings", "threads": 1, "largest_value": 1 << 20}
        cls.site = child.Site(config, cls.wire.channel)
        cls.site.load()
        cls.hello = cls.site.hello()

    def run_task(self, func, args=b"[]", flags=0):
        worker = child.Worker(0, self.site, self.wire.channel, None, None)
        record = json.dumps(RECORD | {"task": RECORD["task"] | {"func": func}, "args": json.loads(args)}).encode()
        parts = [b"01a", b"default", func.encode(), args, b"{}"]
        ends = [sum(map(len, parts[: n + 1])) for n in range(len(parts))]
        worker.execute(1, child.RUN.pack(flags, *ends) + b"".join(parts) + record)
        self.wire.channel.flush()
        return [frame for frame in self.wire.received() if frame[0] in "DE"]

    def test_hello(self):
        self.assertEqual(self.hello["aliases"]["default"]["queues"][0], "default")
        self.assertEqual(self.hello["settings"], "settings")

    def test_a_value_and_its_times(self):
        [(kind, number, payload)] = self.run_task("tasks.add", b"[1, 2]")
        self.assertEqual((kind, number, payload[16:]), ("D", 1, b"3"))
        started, finished = child.TIMES.unpack_from(payload)
        self.assertLessEqual(started, finished)

    def test_the_log_is_django_s_own(self):
        with self.assertLogs("django.tasks", "INFO") as logs, mock.patch.object(self.site, "audible_until", 0):
            self.run_task("tasks.add", b"[1, 2]")
            self.run_task("tasks.boom", b'["why"]')
        functions = [record.funcName for record in logs.records]
        self.assertEqual(functions, ["log_task_started", "log_task_finished"] * 2)
        self.assertEqual(logs.records[1].getMessage(), "Task id=01a path=tasks.add state=SUCCESSFUL")
        self.assertEqual(logs.records[3].exc_info[0], RuntimeError)

    def test_no_record_where_nobody_would_write_it(self):
        root = logging.getLogger()
        with mock.patch.object(root, "handlers", [logging.NullHandler()]):
            self.assertFalse(self.site._audible())
        with mock.patch.object(root, "handlers", [logging.StreamHandler()]):
            self.assertTrue(self.site._audible())
            with mock.patch.object(logging.getLogger("django"), "level", logging.ERROR):
                logging.getLogger("django.tasks").manager._clear_cache()
                self.assertFalse(self.site._audible())
        logging.getLogger("django.tasks").manager._clear_cache()

    def test_receivers_of_the_site_are_seen_when_they_come_and_go(self):
        signal = self.site.signals.task_started
        self.assertFalse(self.site.listened_to())
        seen = []

        def receiver(sender, task_result, **kwargs):
            seen.append((sender.__name__, task_result.id, task_result.status.name))

        signal.connect(receiver)
        self.assertTrue(self.site.listened_to())
        self.run_task("tasks.add", b"[1, 2]")
        signal.disconnect(receiver)
        self.assertFalse(self.site.listened_to())
        self.assertEqual(seen, [("TaskExecutor", "01a", "RUNNING")])

    def test_no_result_is_made_where_nobody_sees_it(self):
        with mock.patch.object(self.site, "result", side_effect=AssertionError):
            [(kind, _, _)] = self.run_task("tasks.add", b"[1, 2]")
        self.assertEqual(kind, "D")

    def test_connections_are_looked_at_before_and_after(self):
        with mock.patch.object(self.site, "close_connections") as close:
            self.run_task("tasks.add", b"[1, 2]")
            self.assertEqual(close.call_count, 2)
            close.side_effect = RuntimeError
            [(kind, _, _)] = self.run_task("tasks.add", b"[1, 2]")
        self.assertEqual(kind, "D")

    def test_who_decides_on_a_retry(self):
        for func, flags, asked in [
            ("tasks.boom", 0, False),
            ("tasks.boom", child.RETRY_BACKOFF, False),
            ("tasks.lost_order", child.RETRY_BACKOFF, True),
            ("tasks.boom", child.RETRY_CALLBACK, True),
        ]:
            [(kind, _, payload)] = self.run_task(func, b"[1]", flags)
            self.assertEqual((kind, "retry" in json.loads(payload[16:])), ("E", asked), (func, flags))

    def test_a_definition_is_made_once(self):
        first = self.site.definition("tasks.add", RECORD["task"])
        self.assertIs(self.site.definition("tasks.add", dict(RECORD["task"])), first)
        other = self.site.definition("tasks.add", RECORD["task"] | {"queue_name": "nobody's", "retry": "no.such"})
        self.assertEqual((other.queue_name, other.retry), ("nobody's", None))


if __name__ == "__main__":
    unittest.main()
