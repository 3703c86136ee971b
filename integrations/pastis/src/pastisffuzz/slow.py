"""The engine that is guided by the domain slow."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("slow")
