"""Descriptors and what they read from files."""

import struct
import tempfile
import unittest
from pathlib import Path

from libpastis.types import CoverageMode, ExecMode, FuzzMode

from pastisffuzz import elf
from pastisffuzz.addon import Engine as Plain
from pastisffuzz.cmp_mem import Engine as CmpMem
from pastisffuzz.descriptor import FfuzzConfiguration
from pastisffuzz.heap import Engine as Heap


def program(content=b"__AFL_SHM_ID\0", keys=b"", machine=62):
    """An ELF file of 64 bits with two sections: the names of sections, and those of keys."""
    names = b"\0.shstrtab\0.ffuzz_keys\0"
    body = content + names + keys
    at = 64 + len(content)
    heads = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    heads += struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, at, len(names), 0, 0, 0, 0)
    heads += struct.pack("<IIQQQQIIQQ", 11, 1, 0, 0, at + len(names), len(keys), 0, 0, 0, 0)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 2, machine, 1)
    head += struct.pack("<QQQ", 0, 0, 64 + len(body))
    head += struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, 3, 1)
    return head + body + heads


KEYS = b"cmp\t1\ta.c\t1\t1\tf\t-\n\t3\t\t2\t\t\t-\nmem\t2\ta.c\t2\t1\tf\t-\n"


class Descriptors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def put(self, name, content):
        path = Path(self.folder.name) / name
        path.write_bytes(content)
        return path

    def test_files_say_what_they_are(self):
        target = elf.inspect(self.put("a", program(keys=KEYS)))
        self.assertEqual(target, elf.Target(62, False, frozenset({"cmp", "mem"})))
        persistent = elf.INSTRUMENTED + elf.PERSISTENT
        self.assertTrue(elf.inspect(self.put("b", program(persistent))).persistent)
        for name, content in [("c", program(b"")), ("d", b"\x7fELF"), ("e", b""), ("f.cmplog", program())]:
            self.assertIsNone(elf.inspect(self.put(name, content)), name)

    def test_damaged_files_have_no_domains(self):
        whole = program(keys=KEYS)
        for end in range(len(elf.INSTRUMENTED) + 64, len(whole), 7):
            target = elf.inspect(self.put("cut", whole[:end]))
            self.assertIn(target.domains, [frozenset(), frozenset({"cmp"}), frozenset({"cmp", "mem"})])

    def test_one_file_is_accepted_for_each_engine(self):
        plain, guided = self.put("b", program()), self.put("a", program(keys=KEYS))
        other = self.put("c", program())
        foreign = self.put("a-arm", program(machine=183))
        self.assertEqual(Plain.accept_file(plain), (True, ExecMode.SINGLE_EXEC, FuzzMode.INSTRUMENTED))
        self.assertEqual(CmpMem.accept_file(guided), (True, ExecMode.SINGLE_EXEC, FuzzMode.INSTRUMENTED))
        self.assertTrue(Plain.accept_file(foreign)[0])
        for engine, path in [(Plain, guided), (Plain, other), (CmpMem, plain), (CmpMem, foreign)]:
            self.assertEqual(engine.accept_file(path), (False, None, None))

    def test_a_build_with_domains_serves_if_there_is_no_other(self):
        guided = self.put("a", program(keys=KEYS))
        self.assertTrue(Plain.accept_file(guided)[0] and CmpMem.accept_file(guided)[0])

    def test_a_program_without_instrumentation_is_accepted_if_there_is_no_other(self):
        head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, 62, 1, 0, 64, 0)
        head += struct.pack("<IHHHHHH", 0, 64, 56, 1, 0, 0, 0)
        loader = struct.pack("<I", elf.PT_INTERP) + bytes(52)
        plain, library = self.put("b", head + loader), self.put("c", head + bytes(56))
        binary = (True, ExecMode.SINGLE_EXEC, FuzzMode.BINARY_ONLY)
        self.assertEqual(Plain.accept_file(plain), binary)
        for engine, path in [(CmpMem, plain), (Plain, library), (Plain, self.put("e", head))]:
            self.assertEqual(engine.accept_file(path), (False, None, None))
        self.put("a", program(machine=183))
        self.assertEqual(Plain.accept_file(plain), binary)
        self.put("d", program())
        self.assertFalse(Plain.accept_file(plain)[0])

    def test_the_name_of_a_program_without_instrumentation_chooses_its_domain(self):
        loader = struct.pack("<I", elf.PT_INTERP) + bytes(52)
        head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, 62, 1, 0, 64, 0)
        content = head + struct.pack("<IHHHHHH", 0, 64, 56, 1, 0, 0, 0) + loader
        plain, heap, stack = (self.put(name, content) for name in ["b", "b-heap", "b-stack"])
        binary = (True, ExecMode.SINGLE_EXEC, FuzzMode.BINARY_ONLY)
        self.assertEqual(Plain.accept_file(plain), binary)
        self.assertEqual(Heap.accept_file(heap), binary)
        for engine, path in [(Plain, heap), (Heap, plain), (Plain, stack), (CmpMem, heap)]:
            self.assertEqual(engine.accept_file(path), (False, None, None))
        # A build without domains is preferred to the first, one with this domain to the second.
        self.put("c", program())
        self.assertFalse(Plain.accept_file(plain)[0])
        self.assertEqual(Heap.accept_file(heap), binary)
        self.put("d", program(keys=b"heap\t1\ta.c\t1\t1\tf\t-\n"))
        self.assertFalse(Heap.accept_file(heap)[0])

    def test_options_are_words_of_a_shell(self):
        path = self.put("conf", b"-t 50  # ms\n-x 'a b'\n")
        configuration = FfuzzConfiguration.from_file(path)
        self.assertEqual(configuration.options, ["-t", "50", "-x", "a b"])
        self.assertEqual(FfuzzConfiguration.from_str(configuration.to_str()).options, configuration.options)
        self.assertEqual(FfuzzConfiguration.new().to_str(), "")
        self.assertEqual(configuration.get_coverage_mode(), CoverageMode.EDGE)
        self.assertEqual(Plain.supported_coverage_strategies(), [CoverageMode.EDGE])


if __name__ == "__main__":
    unittest.main()
