#!/usr/bin/env python3
"""Makes tests/data/fuzzmanager/gdb_addresses.json: what FuzzManager's parser says each instruction touches.

Run it with the Python of an environment that has FuzzManager 0.9.1:
    target/fuzzmanager/venv/bin/python scripts/gdb-addresses.py > tests/data/fuzzmanager/gdb_addresses.json
"""

import contextlib
import io
import itertools
import json
import sys

from FTB.ProgramConfiguration import ProgramConfiguration
from FTB.Signatures.CrashInfo import CrashInfo

X86_64 = {
    name: 0x1000 * (at + 1) + 0x10
    for at, name in enumerate("rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split())
} | {"rip": 0x401000, "rcx": 3, "rdx": 0xFFFFFFFFFFFFFFF0, "rbx": 0xFFFFFFFF80000000, "r9": 0x4141414141414141}
I386 = {
    name: 0x1000 * (at + 1)
    for at, name in enumerate("eax ebx ecx edx esi edi ebp esp".split())
} | {"eip": 0x8048000, "ecx": 3, "edx": 0xFFFFFFF0}
ARM64 = {f"x{at}": 0x1000 * at for at in range(31)} | {"sp": 0x7FF0, "pc": 0x5000}
# A debugger that could not tell some of them.
PARTIAL = {"rax": 0x1000, "rsp": 0x7FFE0000, "rip": 0x401000}


def modes(regs, offsets):
    """Every addressing mode with these registers."""
    base, index, counter = regs
    for offset in offsets:
        yield f"{offset}(%{base})"
        for scale in (1, 2, 4, 8):
            yield f"{offset}(%{base},%{index},{scale})"
        yield f"{offset}(%{base},%{counter},4)"
        yield f"{offset}(,%{index},8)"
        yield f"{offset}(%{base},%{index})"


def x86_64():
    memory = list(modes(("rax", "rcx", "r9"), ("", "0x18", "-0x8")))
    memory += ["(%rdx)", "0x7fffffff(%rbx)", "-0x80000000(%r12,%r13,8)", "0x10(%rdx,%rdx,8)"]
    relative = ["0x2ecb(%rip)", "-0x1000(%rip)", "0x2ecb(%rip)        # 0x403ed2", "0x0(%rip)  # 0x401007 <g>"]
    absolute = ["0x601040", "%fs:0x28", "%fs:0xfffffffffffffff8", "%gs:(%rax)", "%ds:0x0", "%es:0x8(%rdi)"]
    parts = ["(%eax)", "0x4(%ecx)", "(%r8d)", "(%bx)", "(%si)", "(%al)", "0x1(%dh)", "(%sil)", "(%r10w)", "(%esp,%ebx,2)"]
    for place in memory + relative + absolute + parts:
        yield f"mov    {place},%edi"
        yield f"mov    %edi,{place}"
        yield f"movl   $0xdead,{place}"
        yield f"incl   {place}"
        yield f"call   *{place}"
        yield f"jmp    *{place}"
    for place in memory[:8] + relative + absolute + parts:
        yield from (f"push   {place}", f"popq   {place}", f"callq  *{place}", f"jmpq   *{place}")
        yield from (f"setne  {place}", f"lock xadd %eax,{place}", f"imul   $0x3,{place},%ecx")
        yield from (f"vpaddd {place},%ymm1,%ymm2", f"shld   $0x4,%eax,{place}", f"divl   {place}")
        yield from (f"vpinsrd $0x1,{place},%xmm0,%xmm1", f"vmovaps %zmm0,{place}{{%k1}}", f"lea    {place},%rax")
    yield from X86_OTHERS


X86_OTHERS = """ret|retq|ret    $0x8|ud2|(bad)|hlt|leave|leaveq|int3|nop|syscall|cltq||(bad) (%rax)|push   %rbp|pop    %rbx
pushq  $0x10|push   $0x10|call   0x401136 <f>|callq  0x401136|call   *%rax|jmp    *%rax|jmp    0x401000 <f+4>|jne    0x401020
mov    %eax,%ebx|mov    $0x5,%eax|mov    $0xffffffffffffffff,%rax|mov    $-0x1,%rax|mov    $5,%eax|add    $0x10,%rsp
movabs 0x1122334455667788,%al|movabs %eax,0x1122334455667788|movabs $0x7fff0000,%rax|mov    0x1234,%eax|mov    %eax,0x1234
cmp    -0x10,%eax|test   %rax,%rax|xchg   %ax,%ax|in     (%dx),%al|out    %al,(%dx)|enter  $0x10,$0x0
movsb  %ds:(%rsi),%es:(%rdi)|movsq  %ds:(%rsi),%es:(%rdi)|rep movsb %ds:(%rsi),%es:(%rdi)|rep stos %al,%es:(%rdi)|stos   %al,%es:(%rdi)
lods   %ds:(%rsi),%al|cmpsb  %es:(%rdi),%ds:(%rsi)|scas   %es:(%rdi),%al|xlat   %ds:(%rbx)|xadd   (%rax),(%rcx)
fld    %st(1)|fadd   %st,%st(1)|fadd   %st(2),%st|fldt   0x10(%rbp)|fstpl  -0x8(%rax,%rcx,8)|fnstcw (%rsp)
movups (%rax),%xmm0|movaps %xmm0,-0x40(%rbp)|vmovdqu (%rax,%rcx,1),%ymm0|vmovdqa %ymm0,0x20(%rdi,%rcx,4)|movdqa 0x0(%rip),%xmm1
vgatherdps %xmm1,(%rax,%xmm2,4),%xmm0|vpermq $0x4e,%ymm0,%ymm1|pshufd $0x0,%xmm0,%xmm0|pshufd $0x0,(%rax),%xmm0|cmpxchg %ecx,(%rdx)
lock cmpxchg %rcx,(%rax)|lock incl (%rax)|lock decq 0x8(%rax,%rcx,8)|cmpxchg16b (%rdi)|bnd jmp *%rax|notrack jmp *%rax
notrack jmp *0x8(%rax)|rex.W call *0x2fe2(%rip)        # 0x403ff0|data16 nop|nopw   0x0(%rax,%rax,1)|cs nopw 0x0(%rax,%rax,1)|nopl   (%rax)
prefetcht0 (%rax)|clflush (%rdi)|xsave  (%rax)|shrb   -0x69(%rdx,%rcx,8)|shl    (%rax)|sarl   $0x2,(%rax)|sar    %cl,(%rax,%rcx,4)
bt     %rax,(%rcx)|bts    $0x3,0x8(%rax)|adc    $0x0,0x10(%rdi,%rax,2)|addr32 mov (%eax),%ecx|mov    %cr2,%rax|sete   %al
pushfq|callw  *(%rax)|callb  *(%rax)|pushl  (%rax)|popw   0x8(%rax)|call   (%rax)|jmp    (%rax)|MOV    (%rax),%ecx|mov  (%rax) , %ecx
mov    010(%rax),%ecx|mov    8(%rax),%ecx|mov    -8(%rax,%rcx,2),%ecx|mov    0X8(%rax),%ecx|mov    sym(%rip),%ecx|mov    (%rax,%ecx""".replace(
    "\n", "|"
).split("|")


def i386():
    for place in itertools.chain(modes(("eax", "ecx", "edx"), ("", "0x18", "-0x8", "0xfffffff0")), ["0x8048123", "%gs:0x14"]):
        yield from (f"mov    {place},%ecx", f"mov    %ecx,{place}", f"call   *{place}", f"jmp    *{place}", f"incl   {place}")
        yield from (f"push   {place}", f"sete   {place}", f"imul   $0x3,{place},%ecx")
    yield from ("ret", "ud2", "push   %ebp", "hlt", "", "mov    $0xfffffffc,%eax", "mov    %eax,-0x4", "mov (%ax),%ecx")


def arm64():
    places = "[x1]|[x1, #16]|[x1, #-8]|[x1, #0x20]|[sp, #8]|[sp]|[x1, x2]|[x1, x2, lsl #3]|[x1], #8|[x1, #8]!|[w1]|[x31]|0x4000|[x1,#4]"
    for place in places.split("|"):
        yield from (f"{name} {place}" for name in ("ldr x3,", "str w2,", "ldrb w3,", "stur x0,", "ldur x0,", "ldp x0, x1,", "ldxr w1,"))
    yield from ("ret", "nop", "brk #0x1", ".inst 0x00000000 ; undefined", ".inst 0x00000000", "udf #0", "blr x8", "bl 0x4000", "", "cbz x0, 0x400", "svc #0x0")


def partial():
    for place in modes(("rax", "rcx", "r9"), ("", "0x18")):
        yield from (f"mov    {place},%ecx", f"call   *{place}", f"push   {place}")


def address(instruction, registers):
    lines = ["Program received signal SIGSEGV, Segmentation fault."]
    lines += [f"{name}\t{value:#x}" for name, value in registers.items()]
    lines += [f"=> 0x401000 <f+4>:\t{instruction}"]
    configuration = ProgramConfiguration("x", "x86-64", "linux")
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            info = CrashInfo.fromRawCrashData([], [], configuration, lines)
        except Exception:
            return "error"
    return None if info.crashAddress is None else f"{info.crashAddress:#x}"


def main():
    machines = {"x86_64": (X86_64, x86_64), "i386": (I386, i386), "arm64": (ARM64, arm64), "partial": (PARTIAL, partial)}
    out = {"note": "instruction -> address that FuzzManager 0.9.1 computes; null: none, error: it fails", "machines": {}}
    for name, (registers, forms) in machines.items():
        cases = {form: address(form, registers) for form in forms()}
        out["machines"][name] = {"registers": {key: hex(value) for key, value in registers.items()}, "cases": cases}
    lines = json.dumps(out, indent=0)
    sys.stdout.write(lines + "\n")


if __name__ == "__main__":
    main()
