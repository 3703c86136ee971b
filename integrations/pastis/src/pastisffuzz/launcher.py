"""The stock broker with the faults taken out that a fleet meets: pastis-ffuzz-broker.

It takes the broker's own options, and in front of them --listen ADDRESS and --proxy HOST:PORT. What
is different:

* it listens on the loopback address unless told otherwise;
* with --proxy it is also a client of the broker there: inputs go up and down, and it starts and stops
  with it;
* a message from a client that did not say Hello is logged, and does not end the receiving thread;
  nor does any other message that a callback fails on;
* a client for whose machine there is no target is logged;
* a report of a static analysis (-r) is sent as the bytes that the message wants, not as text;
* SIGINT and SIGTERM end it at any time, also while it starts and as a background job of a shell; a
  second one exits immediately;
* host names with "/" or "_" do not become broken file names;
* inputs for a client that reads slowly wait, and are not dropped above 1000.
"""

import logging
import os
import runpy
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

USAGE = "usage: pastis-ffuzz-broker [--listen ADDRESS] [--proxy HOST:PORT] OPTIONS OF pastis-broker\n"
# What a broker is to the broker above it: any engine of ours will do.
ENGINE = "pastisffuzz.addon"


class End:
    """The wish to end. The stock broker takes it from KeyboardInterrupt alone, which is lost when it comes
    before the loop that expects it, and when background jobs ignore the signal."""

    # A key that is held, or a signal to the group and to the process, is one wish: seconds.
    ONE_WISH = 0.5

    def __init__(self):
        self.asked_at = None
        self.broker = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.ask)

    def ask(self, _number, _frame):
        now = time.monotonic()
        if self.asked_at is not None:
            if now - self.asked_at > self.ONE_WISH:
                os._exit(1)
            return
        self.asked_at = now
        if self.broker is None:
            # Nobody waits for a word yet. Code that catches this is followed by begin().
            raise SystemExit(0)
        self.broker._stop = True

    def begin(self, broker):
        """From now on the broker's loop looks for its end."""
        self.broker = broker
        if self.asked_at is not None:
            broker._stop = True


def harden(address, above, end):
    """Changes the installed broker's classes in this process; above is a host and a port, or None."""
    import zmq
    from libpastis.agent import AgentMode, NetworkAgent
    from pastisbroker.broker import PastisBroker
    from pastisbroker.client import PastisClient

    class Socket(zmq.Socket):
        """The end of a broker is told by one thread while another hands inputs on."""

        sending = threading.Lock()

        def send_multipart(self, *words, **options):
            with self.sending:
                return super().send_multipart(*words, **options)

    def bind(self, port=5555, ip=address):
        self.socket = self.ctx.socket(zmq.ROUTER, socket_class=Socket)
        # The loop looks for its end between two messages: milliseconds.
        self.socket.RCVTIMEO = 500
        # No limit: what a slow client has not read yet is kept.
        self.socket.SNDHWM = 0
        self.socket.RCVHWM = 0
        self.socket.IPV6 = ":" in ip
        self.socket.bind(f"tcp://{bracketed(ip)}:{port}")
        self.mode = AgentMode.BROKER

    def get_client(self, cli_id):
        client = self.clients.get(cli_id)
        if client is None:
            logging.warning("message of a client that did not say Hello: %r", cli_id)
        return client

    start_client = PastisBroker.start_client

    def start_known(self, client):
        if self.programs.get((client.platform, client.arch)):
            start_client(self, client)
        else:
            where = f"{client.platform.name}, {client.arch.name}"
            logging.error("no target for %s in the bins folder", where)

    send_start = PastisBroker.send_start

    def send_start_with_bytes(self, *words):
        *words, report = words
        send_start(self, *words, report.encode() if isinstance(report, str) else report)

    init = PastisClient.__init__

    def init_safely(self, id, netid, engines, arch, cpus, memory, hostname, platform):
        init(self, id, netid, engines, arch, cpus, memory, safe(hostname), platform)

    start = PastisBroker.run

    def run(self, *words, **options):
        if above is not None:
            self.set_proxy(*above, ENGINE)
        end.begin(self)
        start(self, *words, **options)

    PastisBroker.run = run
    NetworkAgent.bind = bind
    PastisBroker.get_client = get_client
    PastisBroker.start_client = start_known
    PastisBroker.send_start = send_start_with_bytes
    PastisClient.__init__ = init_safely
    for name in CALLBACKS:
        setattr(PastisBroker, name, survivor(getattr(PastisBroker, name)))


CALLBACKS = [
    "seed_received",
    "hello_received",
    "log_received",
    "telemetry_received",
    "stop_coverage_received",
    "data_received",
]


def survivor(callback):
    """The callback, whose failure is logged and no more."""

    def call(self, cli_id, *args):
        try:
            callback(self, cli_id, *args)
        except Exception:  # noqa: BLE001
            logging.exception("a message of %r failed", cli_id)

    return call


def safe(name):
    """Part of a file name that tools split at "_"."""
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in name)


def bracketed(address):
    """An address of IPv6 as it stands in front of a port."""
    return f"[{address}]" if ":" in address else address


def main():
    words = sys.argv[1:]
    if words[:1] in (["-h"], ["--help"]) or not words:
        sys.stdout.write(USAGE + __doc__.split("\n", 1)[1])
        return 0 if words else 2
    own = {"--listen": "127.0.0.1", "--proxy": ""}
    while words and words[0].partition("=")[0] in own:
        name, given, value = words.pop(0).partition("=")
        if not (given or words):
            return wrong(f"{name} wants a value")
        own[name] = value if given else words.pop(0)
    above = None
    if own["--proxy"]:
        host, _, port = own["--proxy"].rpartition(":")
        if not host or not port.isdecimal():
            return wrong("--proxy wants HOST:PORT")
        above = host, int(port)
    script = beside("pastis-broker") or shutil.which("pastis-broker")
    if script is None:
        sys.stderr.write("pastis-ffuzz-broker: pastis-broker is not installed\n")
        sys.stderr.write("pastis-ffuzz-broker: hint: pip install pastis-framework 'bitstring<5'\n")
        return 1
    # Before anything that takes time: the packages need seconds.
    harden(own["--listen"], above, End())
    sys.argv = [script, *words]
    runpy.run_path(script, run_name="__main__")
    return 0


def wrong(cause):
    sys.stderr.write(f"pastis-ffuzz-broker: {cause}\npastis-ffuzz-broker: hint: {USAGE}")
    return 2


def beside(name):
    """A command of the environment that this one belongs to, also if that is not in PATH."""
    path = Path(sys.executable).with_name(name)
    return str(path) if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
