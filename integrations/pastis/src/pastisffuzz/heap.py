"""The engine that is guided by the domain heap."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("heap")
