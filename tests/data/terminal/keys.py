"""Somebody at a terminal: starts a job in a shell, types, presses Ctrl-Z, goes on with fg, ends it.

usage: keys.py SIGNAL TEXT SECONDS COMMAND

COMMAND shows its screen, with TEXT on it. It is stopped for SECONDS, in which none of its processes may do anything; at
the end it gets SIGNAL, as a key (3: Ctrl-C) or from elsewhere (any other). All checks end with an AssertionError that
shows what was on the terminal.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

DEADLINE = 300
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    def __init__(self):
        self.shell, self.fd = pty.fork()
        if self.shell == 0:
            # It does not mend what a job leaves behind.
            os.environ.update(PS1="", TERM="xterm")
            os.execvp("dash", ["dash", "-i", "-m"])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.shown = b""

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        if select.select([self.fd], [], [], 0.02)[0]:
            try:
                self.shown += os.read(self.fd, 65536)
            except OSError:
                return False
        return True

    def wait(self, what, done):
        end = time.monotonic() + DEADLINE
        while not done():
            assert time.monotonic() < end, (what, self.shown[-3000:])
            self.read()

    def wait_for(self, text, start):
        """The place behind the text, from start on."""
        self.wait(text, lambda: text in self.shown[start:])
        return self.shown.index(text, start) + len(text)

    def has(self, mode):
        return bool(termios.tcgetattr(self.fd)[3] & mode)

    def run(self, text):
        """Has the shell say something, so that it is known to listen."""
        start = len(self.shown)
        self.type(f"printf '<%s>\\n' {text}\n")
        self.wait_for(f"<{text}>".encode(), start)


def fields(pid):
    """What the kernel says of a process, behind its name."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


def family(pid):
    """The process, its children and theirs."""
    found, parents = [pid], {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents.setdefault(int(fields(name)[1]), []).append(int(name))
        except OSError:
            pass
    for one in found:
        found += parents.get(one, [])
    return found


def work(job):
    """Ticks of the processor that its processes have used, and those that have ended before."""
    ticks = 0
    for pid in family(job):
        try:
            ticks += sum(int(field) for field in fields(pid)[11:15])
        except OSError:
            # Its parent has its ticks, now or soon.
            pass
    return ticks


def main():
    number, text, seconds, command = int(sys.argv[1]), sys.argv[2].encode(), float(sys.argv[3]), sys.argv[4]
    terminal = Terminal()
    terminal.run("ready")
    terminal.type(command + "\n")
    at = terminal.wait_for(text, terminal.wait_for(ENTER, len(terminal.shown)))
    job = os.tcgetpgrp(terminal.fd)
    assert not terminal.has(termios.ECHO), "typed keys are echoed into the screen"
    assert terminal.has(termios.ISIG), "Ctrl-C is no signal any more"
    terminal.type("echo WRO''NG\n")
    terminal.type("\x1a")
    at = terminal.wait_for(LEAVE, at)
    assert b"\x1b[?25h" in terminal.shown[at - 40 : at + 10], "the cursor stays hidden"
    terminal.wait("a job that is stopped", lambda: fields(job)[0] == "T")
    terminal.wait("the shell in front", lambda: os.tcgetpgrp(terminal.fd) == terminal.shell)
    assert terminal.has(termios.ECHO), "the shell has no echo"
    assert ENTER not in terminal.shown[at:], terminal.shown[at:]
    terminal.run("stopped")
    # Workers finish the run at which they are.
    since, before = time.monotonic(), work(job)
    limit = time.monotonic() + DEADLINE
    while time.monotonic() < since + seconds:
        for _ in range(10):
            terminal.read()
        now = work(job)
        # A look at signals and orders from time to time is no work.
        if now > before + 2 + 4 * seconds:
            assert time.monotonic() < limit, "its processes do not stop"
            since, before = time.monotonic(), now
    at = len(terminal.shown)
    terminal.type("fg\n")
    at = terminal.wait_for(text, terminal.wait_for(ENTER, at))
    assert not terminal.has(termios.ECHO), "typed keys are echoed after fg"
    started = work(job)
    terminal.wait("work", lambda: work(job) > started)
    terminal.type("echo WRO''NG\n")
    if number == 3:
        terminal.type("\x03")
    else:
        os.kill(job, number)
    terminal.wait_for(LEAVE, at)
    terminal.wait("the shell in front", lambda: os.tcgetpgrp(terminal.fd) == terminal.shell)
    assert terminal.has(termios.ECHO), "the shell has no echo at the end"
    terminal.run("done")
    terminal.type("exit\n")
    while terminal.read():
        pass
    assert b"WRO" not in terminal.shown, terminal.shown[-3000:]
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.shell, 0)[1]) == 0
    print("as it should be")


main()
