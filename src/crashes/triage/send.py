#!/usr/bin/env python3
"""send.py INPUT NET COMMAND...: starts a server and sends it the messages of an input over real sockets.

NET is tcp:PORT, udp:PORT or unix:PATH. An input is a list of messages: a little-endian word of four bytes, whose lower
24 bits are a length and whose upper 8 bits are the number of a connection, and the bytes. Each message is sent when the
server has answered the one before, or after a quarter of a second. The exit code is that of a shell."""
import select
import socket
import struct
import subprocess
import sys
import time


def messages(data):
    at = 0
    word = struct.unpack("<I", data[:4])[0] if len(data) >= 4 else 1 << 31
    if word >> 31 or (word & 0xFFFFFF) > len(data) - 4:
        return [(0, data)] if data else []
    found = []
    while at + 4 <= len(data):
        word = struct.unpack("<I", data[at : at + 4])[0]
        length = word & 0xFFFFFF
        found.append((word >> 24 & 127, data[at + 4 : at + 4 + length]))
        at += 4 + length
    return found


def connect(net, deadline):
    kind, place = net.split(":", 1)
    family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
    address = place if kind == "unix" else ("127.0.0.1", int(place))
    while True:
        one = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
        try:
            one.connect(address)
            return one
        except OSError:
            one.close()
            if time.monotonic() > deadline:
                sys.exit(f"send.py: nothing listens at {net}")
            time.sleep(0.02)


def main():
    path, net, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    if net.startswith("udp"):
        time.sleep(0.5)  # nobody says when a port of datagrams is open
    connections = {}
    try:
        for number, text in messages(open(path, "rb").read()):
            if number not in connections:
                connections[number] = connect(net, time.monotonic() + 10)
            one = connections[number]
            one.sendall(text)
            if select.select([one], [], [], 0.25)[0]:
                print(f"{number}: {one.recv(65536)!r}", flush=True)
    except OSError as error:
        print(f"send.py: {error}", file=sys.stderr)
    for one in connections.values():
        one.close()
    try:
        code = server.wait(2)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
        code = 0
    sys.exit(128 - code if code < 0 else code)


main()
