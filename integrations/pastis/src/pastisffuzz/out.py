"""The engine that is guided by the domain out."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("out")
