"""The stock broker with the faults taken out that a fleet meets: pastis-ffuzz-broker.

It takes the broker's own options, and --listen ADDRESS in front of them. What is different:

* it listens on the loopback address unless told otherwise;
* a message from a client that did not say Hello is logged, and does not end the receiving thread;
  nor does any other message that a callback fails on;
* a client for whose machine there is no target is logged;
* a report of a static analysis (-r) is sent as the bytes that the message wants, not as text;
* host names with "/" or "_" do not become broken file names;
* inputs for a client that reads slowly wait, and are not dropped above 1000.
"""

import logging
import runpy
import shutil
import signal
import sys
from pathlib import Path

USAGE = "usage: pastis-ffuzz-broker [--listen ADDRESS] OPTIONS OF pastis-broker\n"


def harden(address):
    """Changes the installed broker's classes in this process."""
    import zmq
    from libpastis.agent import AgentMode, NetworkAgent
    from pastisbroker.broker import PastisBroker
    from pastisbroker.client import PastisClient

    def bind(self, port=5555, ip=address):
        self.socket = self.ctx.socket(zmq.ROUTER)
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
    address = "127.0.0.1"
    if words[0].startswith("--listen"):
        name, given, value = words.pop(0).partition("=")
        if name != "--listen" or not (given or words):
            sys.stderr.write(USAGE)
            return 2
        address = value if given else words.pop(0)
    script = beside("pastis-broker") or shutil.which("pastis-broker")
    if script is None:
        sys.stderr.write("pastis-ffuzz-broker: pastis-broker is not installed\n")
        sys.stderr.write("pastis-ffuzz-broker: hint: pip install pastis-framework 'bitstring<5'\n")
        return 1
    harden(address)
    # Background jobs of a shell ignore it, and it is the only good end of a broker.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [script, *words]
    runpy.run_path(script, run_name="__main__")
    return 0


def beside(name):
    """A command of the environment that this one belongs to, also if that is not in PATH."""
    path = Path(sys.executable).with_name(name)
    return str(path) if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
