"""The engine that is guided by the domain perf."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("perf")
