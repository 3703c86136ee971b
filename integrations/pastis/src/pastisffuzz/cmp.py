"""The engine that is guided by the domain cmp."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("cmp")
