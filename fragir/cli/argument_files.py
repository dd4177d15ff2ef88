"""The arguments and variables of a launch with their files read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fragir.cli.arguments import (
    ArrayArgument,
    Behind,
    CommandArgument,
    Fields,
    StructArgument,
    Tensor,
    array_bytes,
    files_of,
    read_array,
    tensor_map,
)
from fragir.errors import FragirError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class LoadedArguments(list[Any]):
    """The arguments of one run; `arrays` by the files that they came from, `variables` by name."""

    def __init__(
        self, values: Iterable[Any], arrays: dict[str, Array], variables: dict[str, Array]
    ) -> None:
        super().__init__(values)
        self.arrays, self.variables = arrays, variables


class Loaded:
    """The arguments with their files read; the same file twice is one buffer."""

    def __init__(
        self,
        arguments: Sequence[CommandArgument],
        variables: Mapping[str, ArrayArgument] | None = None,
    ) -> None:
        self._arguments = arguments
        self._arrays: dict[str, Array] = {}
        self._keys: dict[str, str] = {}
        self._files: dict[tuple[int, int], str] = {}
        self._names: dict[str, str] = {}  # real path of what is written -> as it was called
        self._if_changed: set[str] = set()
        self._structs: dict[str, bytes] = {}
        for argument in arguments:
            for file in files_of(argument):
                self._read(file)
            self._read_structs(argument)
        self._variables = dict(variables or {})
        self._variable_arrays = {n: read_array(b.path) for n, b in self._variables.items()}
        self._variable_names: dict[str, str] = {}
        self._check_variables()

    def _read(self, file: ArrayArgument | Tensor) -> None:
        key = self._key(file.path)
        if key not in self._arrays:
            self._arrays[key] = read_array(file.path)
        if file.written:
            path = os.path.realpath(file.path)
            asked = not (isinstance(file, ArrayArgument) and file.if_changed)
            if asked:
                self._if_changed.discard(path)
            elif path not in self._names:
                self._if_changed.add(path)
            self._names[path] = file.path

    def _read_structs(self, argument: CommandArgument) -> None:
        from fragir.cli.files import read_bytes

        if isinstance(argument, StructArgument):
            self._structs[argument.path] = read_bytes(argument.path)
        elif isinstance(argument, Fields):
            for _, field in argument.fields:
                self._read_structs(field)

    def _key(self, path: str) -> str:
        """What tells files apart: of one file, its first name, whatever links lead to it."""
        if path not in self._keys:
            key = os.path.realpath(path)
            if path != "-" and os.path.isfile(path):
                status = os.stat(path)
                key = self._files.setdefault((status.st_dev, status.st_ino), key)
            self._keys[path] = key
        return self._keys[path]

    def _check_variables(self) -> None:
        """A file is written by one variable, or by arguments."""
        for name, buffer in self._variables.items():
            path = os.path.realpath(buffer.path)
            if not buffer.written:
                continue
            if path in self._names or path in self._variable_names:
                raise FragirError(
                    f"the variable {name} and something else write this file",
                    buffer.path,
                    hint="a variable has memory of its own: give it a file of its own",
                )
            self._variable_names[path] = name

    def values(self) -> LoadedArguments:
        """Fresh arguments for one run: copies of the arrays, bytes, None."""
        copies = {key: array.copy() for key, array in self._arrays.items()}
        variables = {name: array.copy() for name, array in self._variable_arrays.items()}
        return LoadedArguments([self._value(a, copies) for a in self._arguments], copies, variables)

    def _value(self, argument: CommandArgument, copies: Mapping[str, Array]) -> Any:
        match argument:
            case ArrayArgument():
                array = copies[self._key(argument.path)]
                return array if array.ndim else array.reshape(1)
            case Tensor():
                return tensor_map(argument, copies[self._key(argument.path)])
            case Fields():
                from fragir.emulator import Struct as ByValue

                return ByValue({at: self._value(field, copies) for at, field in argument.fields})
            case Behind():
                from fragir.emulator import Pointer

                return Pointer(self._value(argument.to, copies))
            case StructArgument():
                return self._structs[argument.path]
            case _:
                return argument

    def results(self, values: LoadedArguments) -> dict[str, bytes]:
        """File name to content of every file that takes a result, after a run with `values`."""
        contents: dict[str, bytes] = {}
        for path, name in self._names.items():
            key = self._key(name)
            array = values.arrays[key]
            if path in self._if_changed and array.tobytes() == self._arrays[key].tobytes():
                continue
            contents[name] = array_bytes(array)
        for variable in self._variable_names.values():
            name = self._variables[variable].path
            contents[name] = array_bytes(values.variables[variable])
        return contents
