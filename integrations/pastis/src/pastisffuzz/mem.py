"""The engine that is guided by the domain mem."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("mem")
