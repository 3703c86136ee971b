"""The engine that is guided by the domain stack."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("stack")
