"""Functions of a binary: their names, and the order in which a running program calls them first."""
import ctypes, hashlib, os, signal, subprocess
from pathlib import Path

LIST = Path(__file__).with_name("function-order.txt")
TRACE_ME, GET_REGISTERS, SET_REGISTERS, CONTINUE, SET_OPTIONS = 0, 12, 13, 7, 0x4200
# With a clone, the new thread is traced too; no process outlives the tracer.
FOLLOW_CLONES, KILL_WITH_TRACER = 0x8, 0x100000
ALL_CHILDREN = 0x40000000
INSTRUCTION_POINTER, REGISTERS = 16, 27
BREAKPOINT = 0xCC

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def key(name):
    """Returns a short hash of a readable name: the list of names themselves would have a megabyte."""
    return hashlib.blake2b(name.encode(), digest_size=5).hexdigest()


def symbols(binary, *options):
    """Returns (address, symbol) for each function of an unstripped binary."""
    told = subprocess.run(["nm", "--defined-only", *options, binary], capture_output=True, text=True, check=True).stdout
    rows = (line.split(" ", 2) for line in told.splitlines())
    return [(int(address, 16), name) for address, kind, name in rows if kind in "tTwW"]


def readable_names(binary):
    """Returns each symbol with its name as source code has it. Unlike symbols, those are the same in each build."""
    names = [name for _, name in symbols(binary, "--no-sort")]
    return list(zip(names, (name for _, name in symbols(binary, "--no-sort", "--demangle")), strict=True))


class Tracer:
    """A program that stops at the first call of each function, in each round."""

    def __init__(self, command, environment, log, addresses):
        self.pid = os.fork()
        if self.pid == 0:
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            libc.ptrace(TRACE_ME, 0, None, None)
            os.execve(command[0], command, environment)
        os.waitpid(self.pid, ALL_CHILDREN)
        libc.ptrace(SET_OPTIONS, self.pid, None, FOLLOW_CLONES | KILL_WITH_TRACER)
        self.memory = open(f"/proc/{self.pid}/mem", "r+b", buffering=0)
        self.saved = {}
        self.pages = []
        self.round, self.called = 1, set()
        self.base = self.set_breakpoints(command[0], addresses)

    def set_breakpoints(self, binary, addresses):
        """Puts a breakpoint at each address. Returns where the program was loaded."""
        maps = [line.split() for line in open(f"/proc/{self.pid}/maps")]
        own = [it for it in maps if len(it) > 5 and it[5].startswith("/") and os.path.samefile(it[5], binary)]
        base = int(own[0][0].split("-")[0], 16)
        for start, end in ((int(it, 16) for it in row[0].split("-")) for row in own if "x" in row[1]):
            self.memory.seek(start)
            code = bytearray(self.memory.read(end - start))
            for at in (base + it for it in addresses if start <= base + it < end):
                self.saved[at] = code[at - start]
                code[at - start] = BREAKPOINT
            self.pages.append((start, code))
            self.write(start, code)
        return base

    def write(self, at, content):
        os.pwrite(self.memory.fileno(), content, at)

    def begin_round(self):
        """Puts the breakpoints back. May be called by another thread than `run`."""
        self.round, self.called = self.round + 1, set()
        for start, code in self.pages:
            self.write(start, code)

    def run(self):
        """Runs the program until it ends. Yields (round, address) of each function when it is called first in a round."""
        libc.ptrace(CONTINUE, self.pid, None, 0)
        while True:
            thread, status = os.waitpid(-1, ALL_CHILDREN)
            if not os.WIFSTOPPED(status):
                if thread == self.pid:
                    return
                continue
            number = os.WSTOPSIG(status)
            if number == signal.SIGTRAP and status >> 16 == 0:
                at = self.step_back(thread)
                if at is not None and at not in self.called:
                    self.called.add(at)
                    yield self.round, at - self.base
            # New threads begin with SIGSTOP.
            libc.ptrace(CONTINUE, thread, None, number if number not in (signal.SIGTRAP, signal.SIGSTOP) else 0)

    def step_back(self, thread):
        """Takes away the breakpoint that a thread has hit, so that it goes on with the function. Returns its address."""
        registers = (ctypes.c_ulonglong * REGISTERS)()
        pointer = ctypes.cast(registers, ctypes.c_void_p)
        libc.ptrace(GET_REGISTERS, thread, None, pointer)
        at = registers[INSTRUCTION_POINTER] - 1
        if at not in self.saved:
            return None
        self.write(at, bytes([self.saved[at]]))
        registers[INSTRUCTION_POINTER] = at
        libc.ptrace(SET_REGISTERS, thread, None, pointer)
        return at
