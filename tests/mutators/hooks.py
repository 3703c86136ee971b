"""Has every hook and writes down each call, a line in the file named by CALLS."""

import os

calls = open(os.environ["CALLS"], "a", buffering=1)
number = 0


def note(name, *args):
    shown = [os.path.basename(a) if isinstance(a, str) else str(a) for a in args]
    print(" ".join([name, *shown]), file=calls)


def init(seed):
    note("init")


def deinit():
    note("deinit")


def fuzz_count(buf):
    note("fuzz_count")
    return 3


def fuzz(buf, add_buf, max_size):
    global number
    note("fuzz", type(buf).__name__, type(add_buf).__name__, max_size)
    number += 1
    return b"FUZZ %d" % number + b"!" * number


def describe(max_description_len):
    note("describe", max_description_len)
    return b"described,by:python"


def post_process(buf):
    note("post_process")
    return memoryview(buf)


def init_trim(buf):
    global step
    note("init_trim")
    step = 0
    return 2


def trim():
    note("trim")
    return bytearray(b"trimmed %d" % step)


def post_trim(success):
    global step
    note("post_trim", success)
    step += 1
    return step


def havoc_mutation(buf, max_size):
    note("havoc_mutation")
    buf.append(33)
    return buf


def havoc_mutation_probability():
    note("havoc_mutation_probability")
    return 100


def queue_get(filename):
    note("queue_get", filename)
    return True


def queue_new_entry(filename_new_queue, filename_orig_queue):
    note("queue_new_entry", filename_new_queue, filename_orig_queue)
    return False


def post_run():
    note("post_run")


def introspection():
    return b"nothing"


splice_optout = True
