"""Descriptors of ffuzz's engines: which file of the bins folder is whose."""

import shlex

from libpastis import EngineConfiguration, FuzzingEngineDescriptor
from libpastis.types import CoverageMode, ExecMode, FuzzMode

from pastisffuzz import __version__, elf


class FfuzzConfiguration(EngineConfiguration):
    """Options of ffuzz, as on a command line."""

    def __init__(self, options=()):
        self.options = list(options)

    @staticmethod
    def new():
        return FfuzzConfiguration()

    @staticmethod
    def from_file(filepath):
        with open(filepath, encoding="utf-8") as file:
            return FfuzzConfiguration.from_str(file.read())

    @staticmethod
    def from_str(s):
        """Words of a shell; # begins a comment."""
        return FfuzzConfiguration(shlex.split(s, comments=True))

    def to_str(self):
        return " ".join(shlex.quote(option) for option in self.options)

    def get_coverage_mode(self):
        return CoverageMode.EDGE

    def set_target(self, target):
        """An address to be reached: ffuzz looks for everything."""


def descriptor(*domains):
    """The descriptor of the engine that is guided by these domains; of none, by edges alone."""
    name = "-".join(["FFUZZ", *(domain.upper() for domain in domains)])

    class Descriptor(FuzzingEngineDescriptor):
        NAME = name
        # Part of file names that are split at "_".
        SHORT_NAME = SHORT_NAMES[domains]
        VERSION = __version__
        config_class = FfuzzConfiguration

        @staticmethod
        def accept_file(binary_file):
            return accept(binary_file, frozenset(domains))

        @staticmethod
        def supported_coverage_strategies():
            return [CoverageMode.EDGE]

    Descriptor.__name__ = Descriptor.__qualname__ = name.title().replace("-", "")
    return Descriptor


SHORT_NAMES = {
    (): "FF",
    ("cmp",): "FFC",
    ("cmp", "mem"): "FFCM",
    ("diff",): "FFD",
    ("heap",): "FFH",
    ("mem",): "FFM",
    ("out",): "FFO",
    ("perf",): "FFP",
    ("slack",): "FFSK",
    ("slow",): "FFS",
    ("stack",): "FFST",
    ("valid",): "FFV",
}


# Domains that need no instrumentation.
NATIVE = frozenset({"heap", "mem", "out", "perf", "slow"})


def plain_domains(path):
    """The domain of a program without instrumentation is the end of its name: NAME-heap."""
    return NATIVE & {path.name.rpartition("-")[2]}


def accept_plain(path, domains):
    """The same for a program without instrumentation: only without a target that has some."""
    plain = (other for other in sorted(path.parent.iterdir()) if elf.is_plain(other))
    rivals = [other for other in plain if plain_domains(other) == domains]
    is_first = bool(rivals) and rivals[0].name == path.name
    built = [found for _, found in elf.folder(path) if found.machine == elf.X86_64]
    if not is_first or any(not domains or found.domains == domains for found in built):
        return False, None, None
    return True, ExecMode.SINGLE_EXEC, FuzzMode.BINARY_ONLY


def accept(path, domains):
    """(accepted, exec mode, fuzz mode) for a file of the bins folder.

    Of several files that would do, only one is accepted, because the broker takes any: persistent
    ones first, then by name.
    """
    known = elf.inspect(path)
    if known is None:
        return accept_plain(path, domains)
    rivals = [(other, found) for other, found in elf.folder(path) if found.machine == known.machine]
    fitting = [(other, found) for other, found in rivals if found.domains == domains]
    if not fitting and not domains:
        # No build without domains: then one with, whose domains do not guide.
        fitting = rivals
    fitting.sort(key=lambda item: (not item[1].persistent, item[0].name))
    if not fitting or fitting[0][0].name != path.name:
        return False, None, None
    mode = ExecMode.PERSISTENT if known.persistent else ExecMode.SINGLE_EXEC
    return True, mode, FuzzMode.INSTRUMENTED
