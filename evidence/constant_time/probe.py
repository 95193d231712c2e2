"""The compiled part of the harness, seen from Python."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["CONTROL", "Probe", "compile_probe"]

SOURCE = Path(__file__).with_name("probe.c")
CONTROL = "probe_leaky_control"
"""The function that leaks on purpose."""


def compile_probe(into: Path) -> Path:
    """Compile the probe into a directory and return the shared object."""
    library = into / "probe.so"
    command = ["cc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return library


class Probe:
    """Requests to the valgrind tool that runs this process."""

    def __init__(self, library: Path) -> None:
        size, address = ctypes.c_size_t, ctypes.c_void_p
        functions = ctypes.CDLL(str(library))

        def function(name: str, result: type | None, *arguments: type) -> ctypes._FuncPointer:
            found = functions[f"probe_{name}"]
            found.restype, found.argtypes = result, arguments
            return found

        self.on_valgrind = function("on_valgrind", ctypes.c_int)
        self.errors = function("errors", ctypes.c_ulong)
        self.start = function("start", None)
        self.zero = function("zero", None)
        self.asked = function("asked", size)
        self._mark = function("mark", None, address, size)
        self._release = function("release", None, address, size)
        self._secret_bytes = function("secret_bytes", size, address, size)
        self._note = function("note", None, ctypes.c_char_p)
        self._dump = function("dump", None, ctypes.c_char_p)
        self._feed = function("feed", None, address, size)
        self._control = function("run_control", None, address, size, address)

    def mark(self, memory: bytes | npt.NDArray[np.int64]) -> None:
        """Make all bytes secret."""
        self._mark(*place(memory))

    def release(self, memory: bytes | npt.NDArray[np.int64]) -> None:
        """Make all bytes public."""
        self._release(*place(memory))

    def secret_bytes(self, memory: bytes | npt.NDArray[np.int64]) -> int:
        """How many bytes have a secret bit."""
        return int(self._secret_bytes(*place(memory)))

    def note(self, line: str) -> None:
        """Write a line into valgrind's log."""
        self._note(line.encode())

    def dump(self, label: str) -> None:
        """Write what was counted since the last `zero` to a file."""
        self._dump(label.encode())

    def feed(self, random: bytes) -> None:
        """Let the operating system's next random bytes be these, with their marks. The caller keeps them alive."""
        self._feed(*place(random))

    def leaky_control(self, random: bytes) -> npt.NDArray[np.int64]:
        """What the function returns that leaks on purpose."""
        result = np.empty(1, dtype=np.int64)
        self._control(*place(random), result.ctypes.data)
        return result


def place(memory: bytes | npt.NDArray[np.int64]) -> tuple[int, int]:
    """Address and size of the bytes themselves; nothing is copied."""
    if isinstance(memory, bytes):
        content = ctypes.pythonapi.PyBytes_AsString
        content.restype, content.argtypes = ctypes.c_void_p, (ctypes.py_object,)
        return content(memory), len(memory)
    if not memory.flags.c_contiguous:
        raise ValueError("only contiguous arrays can be marked")
    return memory.ctypes.data, memory.nbytes
