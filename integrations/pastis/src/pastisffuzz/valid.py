"""The engine that is guided by the domain valid."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("valid")
