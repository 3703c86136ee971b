"""The engine that is guided by the domain diff."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("diff")
