"""The launcher's broker, and clients that would end the stock one."""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import zmq
from libpastis.proto import EnvelopeMsg

# What a healthy machine does in seconds.
DEADLINE = 120
POOL = 3000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Client:
    def __init__(self, port):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.RCVHWM = 0
        self.socket.LINGER = 1000
        self.socket.connect(f"tcp://127.0.0.1:{port}")

    def send(self, **fields):
        message = EnvelopeMsg()
        for kind, values in fields.items():
            part = getattr(message, kind)
            part.SetInParent()
            for name, value in values.items():
                setattr(part, name, value)
        self.socket.send(message.SerializeToString())

    def hello(self, host="host", architecture=1):
        message = EnvelopeMsg()
        hello = message.hello_msg
        hello.architecture, hello.cpus, hello.memory = architecture, 1, 1 << 30
        hello.hostname, hello.platform = host, 1
        hello.engines.add(name="AFLPP", version="1.0.0", pymodule="pastisaflpp.addon")
        self.socket.send(message.SerializeToString())

    def receive(self):
        if not self.socket.poll(DEADLINE * 1000):
            raise AssertionError("the broker says nothing")
        message = EnvelopeMsg()
        message.ParseFromString(self.socket.recv())
        return message.WhichOneof("msg"), message


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bins").mkdir()
        (self.folder / "seeds").mkdir()
        shutil.copy("/bin/true", self.folder / "bins/target")
        for number in range(POOL):
            (self.folder / f"seeds/{number}").write_bytes(b"%05d" % number + bytes(3000))
        self.port = free_port()
        self.addCleanup(zmq.Context.instance().destroy, 0)
        self.log = self.folder / "log"
        self.start()

    def start(self):
        """As a background job of a shell does: SIGINT is ignored, and so in what it starts."""
        words = ["-b", "bins", "-w", "ws", "-s", "seeds", "-p", str(self.port)]
        command = [sys.executable, "-m", "pastisffuzz.launcher", "--listen", "127.0.0.1", *words]
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        with open(self.log, "wb") as log:
            self.broker = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        signal.signal(signal.SIGINT, before)
        self.addCleanup(self.broker.wait)
        self.addCleanup(self.broker.kill)

    def wait_for(self, text):
        deadline = time.monotonic() + DEADLINE
        while text not in self.log.read_text(errors="replace"):
            self.assertIsNone(self.broker.poll(), self.log.read_text(errors="replace"))
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.02)

    def wait_until(self, what, done):
        deadline = time.monotonic() + DEADLINE
        while not done():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.005)

    def test_sigint_ends_it_also_while_it_starts(self):
        maps = Path(f"/proc/{self.broker.pid}/maps")
        self.wait_until("the first of the packages", lambda: "/zmq/" in maps.read_text())
        self.broker.send_signal(signal.SIGINT)
        self.assertEqual(self.broker.wait(DEADLINE), 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            self.start()
            self.wait_for("start broking")
            client = Client(self.port)
            client.hello()
            self.assertEqual(client.receive()[0], "start_msg")
            self.broker.send_signal(number)
            while client.receive()[0] != "stop_msg":
                pass
            self.assertEqual(self.broker.wait(DEADLINE), 0)
            client.socket.close(0)

    def test_strangers_do_no_harm_and_slow_readers_lose_nothing(self):
        self.wait_for("start broking")
        stranger = Client(self.port)
        stranger.send(telemetry_msg={"exec_per_sec": 1})
        stranger.send(input_msg={"seed": b"x", "type": 0})
        self.wait_for("did not say Hello")
        arm = Client(self.port)
        arm.hello(architecture=2)
        self.wait_for("no target for LINUX, ARMV7")
        odd = Client(self.port)
        odd.hello(host="a/b_c")
        self.assertEqual(odd.receive()[0], "start_msg")
        self.wait_for("send start client a-b-c-1-")
        # The broker has sent everything long before this client reads.
        slow = Client(self.port)
        slow.hello(host="slow")
        self.wait_for("send start client slow-2-")
        # Whatever it sent before the log of another client's words is out.
        odd.send(log_msg={"message": "a mark", "level": 20})
        self.wait_for("a mark")
        self.assertEqual(slow.receive()[0], "start_msg")
        seeds = {slow.receive()[1].input_msg.seed for _ in range(POOL)}
        self.assertEqual(len(seeds), POOL)
        self.broker.send_signal(signal.SIGINT)
        self.assertEqual(slow.receive()[0], "stop_msg")
        self.assertEqual(self.broker.wait(DEADLINE), 0)


class Words(unittest.TestCase):
    def test_what_is_wrong_is_told_with_the_right_form(self):
        for words, cause in [
            (["--listen"], "--listen wants a value"),
            (["--proxy=", "--proxy", "here"], "--proxy wants HOST:PORT"),
            (["--listen", "0.0.0.0", "--proxy=:5555"], "--proxy wants HOST:PORT"),
        ]:
            command = [sys.executable, "-m", "pastisffuzz.launcher", *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"pastis-ffuzz-broker: {cause}\n", done.stderr)
            self.assertIn("hint: usage: pastis-ffuzz-broker [--listen ADDRESS]", done.stderr)


if __name__ == "__main__":
    unittest.main()
