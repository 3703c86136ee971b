"""The engine that is guided by the domain slack."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("slack")
