"""The engine that is guided by the domains cmp and mem."""

from pastisffuzz.descriptor import descriptor

Engine = descriptor("cmp", "mem")
