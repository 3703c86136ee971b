#!/usr/bin/env python3
"""Writes the seeds of a server for ffuzz --net: seeds.py SERVER FOLDER.

A seed is a list of messages. Each is a little-endian word of four bytes, then the bytes: the lower 24 bits of the
word are their number, the upper 8 bits are the connection. A message given as (2, b"...") is for connection 2."""
import pathlib
import struct
import sys


def seed(*messages):
    parts = []
    for message in messages:
        connection, data = message if isinstance(message, tuple) else (0, message)
        parts.append(struct.pack("<I", connection << 24 | len(data)) + data)
    return b"".join(parts)


def prefixed(data):
    return struct.pack(">H", len(data)) + data


# MQTT 3.1.1 and 5: every packet here is shorter than 128 bytes, so its length is one byte.


def mqtt(kind, body=b""):
    return bytes([kind, len(body)]) + body


def mqtt_connect(name, version=4, flags=2, rest=b""):
    properties = b"\0" if version == 5 else b""
    start = prefixed(b"MQTT") + bytes([version, flags]) + struct.pack(">H", 60)
    return mqtt(0x10, start + properties + prefixed(name) + rest)


def mosquitto():
    hello, bye, topic = mqtt_connect(b"abc"), mqtt(0xE0), prefixed(b"a/b")
    subscribe = mqtt(0x82, b"\0\1" + topic + b"\1")
    publish = mqtt(0x30, topic + b"hi")
    will = mqtt_connect(b"w", flags=0x2E, rest=prefixed(b"a/will") + prefixed(b"gone"))
    exact = mqtt(0x34, topic + b"\0\2" + b"once")
    release = mqtt(0x62, b"\0\2")
    retained = mqtt(0x31, topic + b"kept")
    wild = mqtt(0x82, b"\0\3" + prefixed(b"a/#") + b"\2" + prefixed(b"+/b") + b"\0")
    five = mqtt_connect(b"five", version=5)
    aliased = mqtt(0x30, topic + b"\3\x23\0\1" + b"hi")
    return {
        "publish": seed(hello, subscribe, publish, bye),
        "twice": seed(will, exact, release, mqtt(0xC0), mqtt(0xA2, b"\0\4" + topic), bye),
        "two-clients": seed(hello, wild, (1, mqtt_connect(b"def")), (1, retained), (1, bye), bye),
        "version-5": seed(five, mqtt(0x82, b"\0\1\0" + topic + b"\1"), aliased, mqtt(0xE0, b"\0\0")),
    }


# DNS.


def dns_name(text):
    return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".") if part) + b"\0"


def dns_query(name, kind=1, extra=b"", number=0x1234, group=1):
    counts = struct.pack(">HHHH", 1, 0, 0, 1 if extra else 0)
    return struct.pack(">HH", number, 0x0100) + counts + dns_name(name) + struct.pack(">HH", kind, group) + extra


# An OPT record: answers of up to 1232 bytes, and a cookie.
DNS_OPT = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 12) + struct.pack(">HH", 10, 8) + b"cookie12"


def dns_queries():
    return {
        "address": [dns_query("example.com"), dns_query("example.com", 28)],
        "records": [dns_query("t.lan", 16), dns_query("lan", 15), dns_query("_sip._tcp.lan", 33)],
        "options": [dns_query("alias.lan", 255, DNS_OPT), dns_query("example.com", 1, DNS_OPT, 7)],
        "backwards": [dns_query("5.3.2.1.in-addr.arpa", 12), dns_query("version.bind", 16, group=3)],
    }


def dnsmasq_udp():
    return {name: seed(*queries) for name, queries in dns_queries().items()}


def dnsmasq_tcp():
    return {name: seed(*map(prefixed, queries)) for name, queries in dns_queries().items()}


def lighttpd():
    form = b"POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\n"
    return {
        "get": seed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /a.txt HTTP/1.0\r\n\r\n"),
        "range": seed(
            b"GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-2,4-\r\nIf-None-Match: \"x\"\r\n"
            b"Accept-Encoding: gzip;q=0.5, deflate\r\n\r\n",
            b"HEAD /folder HTTP/1.1\r\nHost: a:8080\r\nConnection: close\r\n\r\n",
        ),
        "chunked": seed(form + b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n"),
        "list": seed(b"GET /folder/?C=N%20&x=%2e HTTP/1.1\r\nHost: [::1]\r\nConnection: keep-alive\r\n\r\n"),
    }


def redis_command(*words):
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return (f"*{len(words)}\r\n" + "".join(parts)).encode()


def redis():
    command = redis_command
    return {
        "strings": seed(command("PING"), command("SET", "a", "b", "EX", "10"), b"GET a\r\n"),
        "lists": seed(
            command("RPUSH", "l", "1", "3", "2"), command("SORT", "l", "DESC"), command("LRANGE", "l", "0", "-1")
        ),
        "sets": seed(
            command("ZADD", "z", "1", "x", "2.5", "y"),
            command("ZRANGEBYSCORE", "z", "(1", "+inf", "WITHSCORES"),
            command("HSET", "h", "f", "v") + command("HGETALL", "h"),
        ),
        "script": seed(
            command("MULTI"),
            command("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "k", "v"),
            command("EXEC"),
            (1, command("SUBSCRIBE", "c")),
            command("PUBLISH", "c", "m"),
        ),
    }


# TLS: a first message of a client, and records that it would send later.


def tls_record(kind, data, version=0x0303):
    return struct.pack(">BH", kind, version) + prefixed(data)


def tls_hello(suites, extensions):
    body = struct.pack(">H", 0x0303) + bytes(range(32)) + b"\0"
    body += prefixed(b"".join(struct.pack(">H", suite) for suite in suites)) + b"\1\0"
    body += prefixed(b"".join(struct.pack(">H", kind) + prefixed(data) for kind, data in extensions))
    return tls_record(22, b"\1" + struct.pack(">I", len(body))[1:] + body, 0x0301)


P256_BASE = bytes.fromhex(
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)


def mbedtls():
    name = (0, prefixed(b"\0" + prefixed(b"localhost")))
    groups, points = (10, prefixed(struct.pack(">HH", 0x001D, 0x0017))), (11, b"\1\0")
    signatures = (13, prefixed(struct.pack(">HHH", 0x0401, 0x0403, 0x0201)))
    alert, change = tls_record(21, b"\1\0"), tls_record(20, b"\1")
    # Key exchange: with the base point of secp256r1, and with RSA whose content is wrong.
    point = tls_record(22, b"\x10\0\0\x42" + bytes([len(P256_BASE)]) + P256_BASE)
    secret = tls_record(22, b"\x10\0\1\2" + prefixed(bytes(range(256))))
    finished = tls_record(22, bytes(range(40)))
    return {
        "curve": seed(tls_hello([0xC02F, 0xC02B, 0xC013], [name, groups, points, signatures]), point, change, finished),
        "rsa": seed(
            tls_hello([0x009C, 0x002F, 0x0035], [signatures, (22, b""), (23, b""), (35, b"")]), secret, change, finished
        ),
        "closed": seed(tls_hello([0xC030, 0x00FF], [groups, points, signatures, (1, b"\1"), (16, b"\0\3\2h2")]), alert),
    }


def text_lines(*lines):
    return seed(*(line.encode() + b"\r\n" for line in lines))


def proftpd():
    return {
        "list": text_lines("USER anonymous", "PASS a@b", "SYST", "PWD", "TYPE A", "STAT /", "QUIT"),
        "walk": text_lines("USER anonymous", "PASS x", "CWD folder", "CDUP", "SIZE a.txt", "MDTM a.txt", "NOOP"),
        "modes": text_lines("USER anonymous", "PASS x", "FEAT", "TYPE I", "REST 2", "MLST a.txt", "PASV", "RETR a.txt"),
    }


def exim():
    mail = ["MAIL FROM:<b@lan> SIZE=10", "RCPT TO:<c@lan>", "RCPT TO:<c@else.where>"]
    text = "Subject: x\r\nFrom: B <b@lan>\r\n\r\ntext\r\n."
    return {
        "mail": text_lines("EHLO a.lan", *mail, "DATA", text, "QUIT"),
        "chunk": text_lines("EHLO a.lan", *mail, "BDAT 4 LAST\r\nab", "RSET", "VRFY c", "EXPN c"),
        "login": text_lines("EHLO [127.0.0.1]", "AUTH PLAIN AHVzZXIAdXNlcg==", mail[0], "NOOP", "HELP"),
        "challenge": text_lines("EHLO a", "AUTH CRAM-MD5", "dXNlciBhYmNk", "ETRN lan", "QUIT"),
    }


def cares():
    answer = dns_query("www.lan", 255, number=0)
    return {"answer": seed(answer[:2] + b"\x85\x80" + answer[4:])}


def curl():
    return {
        "plain": seed(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc"),
        "chunked": seed(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n", b"3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n"
        ),
        "cookies": seed(
            b"HTTP/1.1 302 Found\r\nSet-Cookie: a=b; Path=/; Max-Age=9; HttpOnly\r\nLocation: /other\r\n"
            b"Content-Length: 0\r\nConnection: close\r\n\r\n",
            (1, b"HTTP/1.0 404 No\r\n\r\nno"),
        ),
    }


SERVERS = {
    "mosquitto": mosquitto,
    "dnsmasq-udp": dnsmasq_udp,
    "dnsmasq-tcp": dnsmasq_tcp,
    "lighttpd": lighttpd,
    "redis": redis,
    "mbedtls": mbedtls,
    "curl": curl,
    "proftpd": proftpd,
    "exim": exim,
    "cares": cares,
}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in SERVERS:
        sys.exit(f"usage: seeds.py {'|'.join(SERVERS)} FOLDER")
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SERVERS[sys.argv[1]]().items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
