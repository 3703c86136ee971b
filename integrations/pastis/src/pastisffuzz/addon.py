"""The engine that is guided by edges alone."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor()
