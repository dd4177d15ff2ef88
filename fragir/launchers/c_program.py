"""A host program in C that launches a kernel: the CUDA driver API, nothing of fragir."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fragir.launchers.plan import (
    Array,
    ByValue,
    LaunchPlan,
    Map,
    Number,
    Size,
    formula,
    scalar_type,
    word,
)

# -- c text ----------------------------------------------------------------------------------------
# The fixed parts of a C host program; braces of C are doubled.

HEAD = """\
/* Launches {entry} ({target}) through the CUDA driver; made by fragir, which it does not need.

   cc {entry}.c -o {entry} -I CUDA/include -lcuda

{usage}

   Other programs take {prefix}_load and {prefix}_launch. Grid, in blocks of {threads} threads:
{grid}. C11, C++ too. */

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                       \\
    do {{                                                                                  \\
        CUresult code_ = (call);                                                          \\
        if (code_ != CUDA_SUCCESS) return code_;                                          \\
    }} while (0)
"""

LOAD = """\

/* Loads the kernel into the current context. */
static CUresult {prefix}_load(CUmodule *module, CUfunction *function)
{{
    CHECK(cuModuleLoadData(module, {prefix}_cubin));
    CHECK(cuModuleGetFunction(function, *module, "{entry}"));
{allow}    return CUDA_SUCCESS;
}}
"""

SHARED = """\
    CHECK(cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {shared}));
"""
NON_PORTABLE = """\
    CHECK(cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
"""

RESIDENT = """\

/* How many blocks run at once on the current device. */
static CUresult {prefix}_resident(CUfunction function, long long *blocks)
{{
    int each = 0, count = 0;
    CUdevice device;
    CHECK(cuCtxGetDevice(&device));
    CHECK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, {threads}, {shared}));
    *blocks = (long long)count * (each < 1 ? 1 : each);
    return CUDA_SUCCESS;
}}
"""

RESIDENT_CLUSTERS = """\

/* How many blocks run at once on the current device, in whole clusters. */
static CUresult {prefix}_resident(CUfunction function, long long *blocks)
{{
    int count = 0;
    CUlaunchAttribute attribute;
    CUlaunchConfig config;
    memset(&attribute, 0, sizeof attribute);
    memset(&config, 0, sizeof config);
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = {cx};
    attribute.value.clusterDim.y = {cy};
    attribute.value.clusterDim.z = {cz};
    config.gridDimX = {cx};
    config.gridDimY = {cy};
    config.gridDimZ = {cz};
    config.blockDimX = {bx};
    config.blockDimY = {by};
    config.blockDimZ = {bz};
    config.sharedMemBytes = {shared};
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cuOccupancyMaxActiveClusters(&count, function, &config));
    *blocks = {blocks}LL * (count < 1 ? 1 : count);
    return CUDA_SUCCESS;
}}
"""

NOTHING = """\

/* Extents and strides as tensor maps have them: a dimension of one element has the stride of a row,
   and an array without elements is one of ones, of zeros. */
static CUresult {prefix}_fits(int rank, cuuint64_t *extents, cuuint64_t *strides, int bits,
                       CUdeviceptr *address)
{{
    static CUdeviceptr zeros = 0;
    int empty = 0;
    for (int i = 0; i < rank; i++) empty |= extents[i] == 0;
    if (empty && !zeros) {{
        CHECK(cuMemAlloc(&zeros, 16));
        CHECK(cuMemsetD8(zeros, 0, 16));
    }}
    if (empty) *address = zeros;
    for (int i = 0; empty && i < rank; i++) extents[i] = i == 0 && bits < 8 ? 8 / bits : 1;
    for (int i = 1; i < rank; i++)
        if (extents[i] == 1) strides[i - 1] = (extents[0] * bits + 127) / 128 * 16;
    return CUDA_SUCCESS;
}}
"""

MAIN = """\

#ifndef {upper}_NO_MAIN
static int said(CUresult code, const char *what)
{{
    const char *words = 0;
    if (code == CUDA_SUCCESS) return 0;
    cuGetErrorString(code, &words);
    fprintf(stderr, "%s: %s\\n", what, words ? words : "unknown error");
    return 1;
}}

/* Reads a file of exactly so many bytes into memory. */
static int take(const char *name, void *memory, size_t bytes)
{{
    FILE *file = fopen(name, "rb");
    size_t found = file ? fread(memory, 1, bytes, file) : 0;
    int more = file ? fgetc(file) : EOF;
    if (file) fclose(file);
    if (file && found == bytes && more == EOF) return 0;
    if (file) fprintf(stderr, "%s: this file has not %zu bytes\\n", name, bytes);
    else fprintf(stderr, "%s: cannot be read\\n", name);
    return 1;
}}

static int give(const char *name, const void *memory, size_t bytes)
{{
    FILE *file = fopen(name, "wb");
    size_t done = file ? fwrite(memory, 1, bytes, file) : 0;
    if (file && fclose(file) == 0 && done == bytes) return 0;
    fprintf(stderr, "%s: cannot be written\\n", name);
    return 1;
}}

/* The text behind NAME= among the arguments; null where there is none. */
static const char *value_of(int count, char **values, const char *name)
{{
    size_t length = strlen(name);
    for (int i = 1; i < count; i++)
        if (!strncmp(values[i], name, length) && values[i][length] == '=')
            return values[i] + length + 1;
    return 0;
}}

/* One array: IN, IN,OUT or ,OUT; what is not read is zero. */
typedef struct {{
    const char *name;
    char in[1024];
    const char *out;
    size_t bytes;
    void *host;
    CUdeviceptr device;
}} Buffer;

static int prepare(Buffer *buffer, const char *value)
{{
    const char *comma = value ? strchr(value, ',') : 0;
    size_t length = value ? (comma ? (size_t)(comma - value) : strlen(value)) : 0;
    if (length >= sizeof buffer->in) return 1;
    memcpy(buffer->in, value ? value : "", length);
    buffer->in[length] = 0;
    buffer->out = comma ? comma + 1 : 0;
    buffer->host = calloc(1, buffer->bytes ? buffer->bytes : 1);
    if (!buffer->host) return 1;
    if (buffer->in[0] && take(buffer->in, buffer->host, buffer->bytes)) return 1;
    length = buffer->bytes ? buffer->bytes : 1;
    if (said(cuMemAlloc(&buffer->device, length), "cuMemAlloc")) return 1;
    return said(cuMemcpyHtoD(buffer->device, buffer->host, buffer->bytes), "cuMemcpyHtoD");
}}

int main(int count, char **values)
{{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
{sizes}    for (int i = 1; i < count; i++)
        if (!strchr(values[i], '=')) {{
            fprintf(stderr, "usage: %s {arguments}\\n", values[0]);
            return 2;
        }}
{reading}    if (said(cuInit(0), "cuInit")) return 1;
    if (said(cuDeviceGet(&device, 0), "cuDeviceGet")) return 1;
    if (said(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain")) return 1;
    if (said(cuCtxSetCurrent(context), "cuCtxSetCurrent")) return 1;
    if (said({prefix}_load(&module, &function), "loading {entry}")) return 1;
{buffers}    if (said({prefix}_launch(function, 0{passed}), "launching {entry}")) return 1;
    if (said(cuStreamSynchronize(0), "running {entry}")) return 1;
{results}    cuModuleUnload(module);
    cuDevicePrimaryCtxRelease(device);
    return 0;
}}
#endif
"""


_TAKEN = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if"
    " inline int long main register restrict return short signed sizeof static struct switch"
    " typedef union unsigned void volatile while class new delete template this private public"
    " try catch and or not xor bool true false"
    # what the program itself calls things
    " stream parameters config attribute function module device context count values i"
    " address x_blocks y_blocks z_blocks resident_blocks extents strides box steps said take give"
    " value_of prepare Buffer CHECK".split()
)


def program(plan: LaunchPlan, cubin: bytes) -> str:
    """The text of the program, with the cubin in it."""
    return _Program(plan).text(cubin)


class _Program:
    """What the parts of the text agree on: the names of sizes and arguments."""

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan = plan
        taken: set[str] = {*_TAKEN}
        self.prefix = word(plan.entry, taken)
        self.sizes = {name: word(name, taken) for name in plan.sizes}
        self.names = {one.name: word(one.name, taken) for one in plan.parameters}

    def text(self, cubin: bytes) -> str:
        plan, prefix = self.plan, self.prefix
        words = [f"{name}=NUMBER" for name in plan.sizes]
        for one in plan.arguments:
            words.append(f"{one.name}={'NUMBER' if isinstance(one, ByValue) else 'IN,OUT'}")
        usage = f"   ./{plan.entry} {' '.join(words)}"
        parts = [
            HEAD.format(
                entry=plan.entry,
                target=plan.target,
                usage=usage + "\n\n   Arrays are files of their bytes; IN or OUT may be left out.",
                prefix=prefix,
                threads=math.prod(plan.block),
                grid=f"   {', '.join(map(formula, plan.grid))}",
            ),
            _data(f"{prefix}_cubin", cubin),
            *(_data(f"{self.names[name]}_data", data) for name, data in plan.constants),
        ]
        allow = SHARED.format(shared=plan.shared) if plan.shared else ""
        allow += NON_PORTABLE if math.prod(plan.cluster) > 8 else ""
        parts.append(LOAD.format(prefix=prefix, entry=plan.entry, allow=allow))
        if plan.resident:
            parts.append(self._resident())
        if any(isinstance(one, Map) for one in plan.parameters):
            parts.append(NOTHING.format(prefix=prefix))
        parts.append(self._launch())
        if not any(self.is_pointer(one.name) for one in plan.arguments):
            parts.append(self._main(" ".join(words)))
        return "".join(parts)

    def is_pointer(self, name: str) -> bool:
        """Whether an argument is a buffer of unknown size, of which there is no main program."""
        return not any(one.name == name for one in (*self.plan.arrays, *self._scalars()))

    def _scalars(self) -> Sequence[ByValue]:
        return [one for one in self.plan.parameters if isinstance(one, ByValue)]

    def _resident(self) -> str:
        plan = self.plan
        (cx, cy, cz), (bx, by, bz) = plan.cluster, plan.block
        text = RESIDENT if math.prod(plan.cluster) == 1 else RESIDENT_CLUSTERS
        return text.format(
            prefix=self.prefix,
            threads=math.prod(plan.block),
            shared=plan.shared,
            blocks=math.prod(plan.cluster),
            **{"cx": cx, "cy": cy, "cz": cz, "bx": bx, "by": by, "bz": bz},
        )

    # --- the launch ---------------------------------------------------------------------------

    def _declared_parameters(self) -> list[str]:
        """The launch's own parameters: sizes, then arguments."""
        declared = [f"int {name}" for name in self.sizes.values()]
        for one in self.plan.arguments:
            kind = scalar_type(one)[0] if isinstance(one, ByValue) else "CUdeviceptr"
            declared.append(f"{kind} {self.names[one.name]}")
        return declared

    def _launch(self) -> str:
        plan = self.plan
        lines = [
            "",
            "/* Starts the kernel; arrays lie on the device. Returns before it has ended. */",
            f"static CUresult {self.prefix}_launch(CUfunction function, CUstream stream"
            + "".join(f",\n    {one}" for one in self._declared_parameters())
            + ")",
            "{",
            "    CUlaunchConfig config;",
        ]
        clustered = math.prod(plan.cluster) > 1
        lines += ["    CUlaunchAttribute attribute;"] if clustered else []
        for name, _ in plan.constants:
            lines.append(f"    static CUdeviceptr {self.names[name]} = 0;")
        for one in plan.parameters:
            if isinstance(one, Size):
                lines.append(f"    int {self.names[one.name]} = {self.sizes[one.of]};")
            elif isinstance(one, Map):
                lines.append(f"    CUtensorMap {self.names[one.name]};")
        given = [f"(void *)&{self.names[one.name]}" for one in plan.parameters] or ["0"]
        lines.append("    void *parameters[] = {")
        lines += [f"        {one}," for one in given]
        lines.append("    };")
        for axis, count in zip("xyz", plan.grid, strict=True):
            factors = (f"{_ceiling_text(self._number(f.size), f.divisor)}" for f in count.factors)
            lines.append(f"    long long {axis}_blocks = {' * '.join(factors)};")
        lines += ["    long long resident_blocks = 0;"] if plan.resident else []
        for name in self.sizes.values():
            lines.append(f"    if ({name} < 0) return CUDA_ERROR_INVALID_VALUE;")
        for name, divisor in plan.promises.items():
            lines.append(
                f"    if ({self.sizes[name]} % {divisor}) return CUDA_ERROR_INVALID_VALUE; "
                f"/* the kernel relies on multiples of {divisor} */"
            )
        for number, names in plan.counts:
            product = " * ".join([f"{number}.", *(self.sizes[name] for name in names)])
            lines.append(
                f"    if ({product} > 2147483647.) return CUDA_ERROR_INVALID_VALUE; "
                "/* the kernel counts so far in 32 bits */"
            )
        for array in plan.arrays:
            for size, (needed, divisor) in zip(array.shape, array.least, strict=False):
                least = _ceiling_text(self._number(needed), divisor)
                lines.append(
                    f"    if ({self._number(size)} < {least}) return CUDA_ERROR_INVALID_VALUE; "
                    f"/* {array.name} is too small */"
                )
        lines.append("    if (x_blocks * y_blocks * z_blocks == 0) return CUDA_SUCCESS;")
        lines += self._grid_limits()
        for axis, blocks in zip("xyz", plan.cluster, strict=True):
            if blocks > 1:
                whole = _ceiling_text(f"{axis}_blocks", blocks)
                lines.append(
                    f"    {axis}_blocks = {whole} * {blocks};"
                    if plan.whole_clusters
                    else f"    if ({axis}_blocks % {blocks}) return CUDA_ERROR_INVALID_VALUE; "
                    "/* no whole clusters */"
                )
        for name, data in plan.constants:
            lines += self._constant(self.names[name], len(data))
        for one in plan.parameters:
            lines += self._map(one) if isinstance(one, Map) else ()
        lines.append("    memset(&config, 0, sizeof config);")
        for axis, threads in zip("XYZ", plan.block, strict=True):
            lines.append(f"    config.gridDim{axis} = (unsigned int){axis.lower()}_blocks;")
            lines.append(f"    config.blockDim{axis} = {threads};")
        lines.append(f"    config.sharedMemBytes = {plan.shared};")
        lines.append("    config.hStream = stream;")
        if clustered:
            lines += [
                "    memset(&attribute, 0, sizeof attribute);",
                "    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;",
            ]
            for axis, blocks in zip("xyz", plan.cluster, strict=True):
                lines.append(f"    attribute.value.clusterDim.{axis} = {blocks};")
            lines += ["    config.attrs = &attribute;", "    config.numAttrs = 1;"]
        lines.append("    return cuLaunchKernelEx(&config, function, parameters, 0);")
        return "\n".join([*lines, "}", ""])

    @staticmethod
    def _constant(name: str, size: int) -> Iterator[str]:
        """Puts a constant on the device, with the first launch."""
        yield f"    if (!{name}) {{"
        yield f"        CHECK(cuMemAlloc(&{name}, {size}));"
        yield f"        CHECK(cuMemcpyHtoD({name}, {name}_data, {size}));"
        yield "    }"

    def _grid_limits(self) -> Iterator[str]:
        """No more blocks than run at once, where the kernel asks for that."""
        for axis, count in zip("xyz", self.plan.grid, strict=True):
            if not count.resident:
                continue
            yield f"    CHECK({self.prefix}_resident(function, &resident_blocks));"
            if count.cluster > 1:
                yield f"    resident_blocks -= resident_blocks % {count.cluster};"
                yield f"    if (resident_blocks < 1) resident_blocks = {count.cluster};"
            yield f"    if ({axis}_blocks > resident_blocks) {axis}_blocks = resident_blocks;"

    def _number(self, one: Number) -> str:
        return str(one) if isinstance(one, int) else f"(long long){self.sizes[one]}"

    def _product(self, factors: Sequence[Number]) -> str:
        return " * ".join(self._number(one) for one in factors)

    def _map(self, one: Map) -> Iterator[str]:
        """Encodes one tensor map: dimensions go innermost first, strides are bytes."""
        array = next(a for a in self.plan.arrays if a.name == one.array)
        order = list(range(len(array.shape)))
        if one.turned:
            order[-2:] = order[-1], order[-2]
        order.reverse()
        rank, bits = len(order), array.bits
        bytes_ = f"* {bits // 8}" if bits >= 8 else f"/ {8 // bits}"
        sizes = ", ".join(f"(cuuint64_t){self._number(array.shape[i])}" for i in order)
        steps = [f"(cuuint64_t)({self._product(array.strides[i])}) {bytes_}" for i in order[1:]]
        box = ", ".join(map(str, reversed(one.box)))
        swizzle = f"{one.swizzle}B" if one.swizzle else "NONE"
        promotion = f"L2_{one.promotion}B" if one.promotion else "NONE"
        yield "    {"
        yield f"        cuuint64_t extents[] = {{{sizes}}};"
        yield f"        cuuint64_t strides[] = {{{', '.join(steps) or '0'}}};"
        yield f"        cuuint32_t box[] = {{{box}}};"
        yield f"        cuuint32_t steps[] = {{{', '.join('1' * rank)}}};"
        yield f"        CUdeviceptr address = {self.names[one.array]};"
        if one.written:
            chunks = "return CUDA_ERROR_INVALID_VALUE; /* stores write whole chunks */"
            yield f"        if (extents[0] {bytes_} % 16) {chunks}"
        yield f"        CHECK({self.prefix}_fits({rank}, extents, strides, {bits}, &address));"
        yield f"        CHECK(cuTensorMapEncodeTiled(&{self.names[one.name]},"
        yield f"            CU_TENSOR_MAP_DATA_TYPE_{one.type}, {rank}, "
        yield "            (void *)address, extents, strides, box, steps,"
        yield "            CU_TENSOR_MAP_INTERLEAVE_NONE,"
        yield f"            CU_TENSOR_MAP_SWIZZLE_{swizzle},"
        yield f"            CU_TENSOR_MAP_L2_PROMOTION_{promotion},"
        yield "            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));"
        yield "    }"

    # --- the main program ---------------------------------------------------------------------

    def _main(self, arguments: str) -> str:
        plan = self.plan
        sizes, reading, buffers, results = "", "", "", ""
        for name, own in self.sizes.items():
            sizes += f"    int {own} = 0;\n"
            reading += (
                f'    if (!value_of(count, values, "{name}")) {{\n'
                f'        fprintf(stderr, "{name}=NUMBER is missing\\n");\n'
                f"        return 2;\n    }}\n"
                f'    {own} = atoi(value_of(count, values, "{name}"));\n'
            )
        passed = [*self.sizes.values()]
        for one in plan.arguments:
            own = self.names[one.name]
            if isinstance(one, ByValue):
                sizes += f"    {scalar_type(one)[0]} {own} = 0;\n"
                text = f'value_of(count, values, "{one.name}")'
                reading += f"    if ({text}) {own} = {_read(one, text)};\n"
                passed.append(own)
            elif isinstance(one, Array):
                sizes += f'    Buffer {own} = {{"{one.name}", "", 0, 0, 0, 0}};\n'
                buffers += f"    {own}.bytes = (size_t)({self._extent(one)});\n"
                buffers += (
                    f'    if (prepare(&{own}, value_of(count, values, "{one.name}"))) return 1;\n'
                )
                results += (
                    f"    if ({own}.out) {{\n"
                    f"        if (said(cuMemcpyDtoH({own}.host, {own}.device, {own}.bytes),"
                    f' "cuMemcpyDtoH")) return 1;\n'
                    f"        if (give({own}.out, {own}.host, {own}.bytes)) return 1;\n    }}\n"
                    f"    cuMemFree({own}.device);\n    free({own}.host);\n"
                )
                passed.append(f"{own}.device")
        return MAIN.format(
            upper=self.prefix.upper(),
            sizes=sizes,
            reading=reading,
            prefix=self.prefix,
            entry=plan.entry,
            buffers=buffers,
            passed="".join(f", {one}" for one in passed),
            results=results,
            arguments=arguments,
        )

    def _extent(self, array: Array) -> str:
        """How many bytes lie between the first element of an array and the end of the last."""
        empty = " || ".join(f"{self._number(size)} == 0" for size in array.shape) or "0"
        last = " + ".join(
            f"({self._number(size)} - 1) * ({self._product(part)})"
            for size, part in zip(array.shape, array.strides, strict=True)
        )
        return f"{empty} ? 0 : (({last or '0'} + 1) * {array.bits} + 7) / 8"


def _read(scalar: ByValue, text: str) -> str:
    """A number from text; halves are written as the bits that they have."""
    kind = scalar_type(scalar)[0]
    if kind in ("float", "double"):
        return f"({kind})strtod({text}, 0)"
    return f"({kind})strtoll({text}, 0, 0)"


def _ceiling_text(size: str, divisor: int) -> str:
    return size if divisor == 1 else f"(({size} + {divisor - 1}) / {divisor})"


def _data(name: str, data: bytes) -> str:
    return f"\nstatic const unsigned long long {name}[] = {{\n{_words(data)}}};\n"


def _words(data: bytes) -> str:
    """Bytes as words of a little-endian machine, so that they are aligned."""
    padded = data + bytes(-len(data) % 8)
    words = [int.from_bytes(padded[i : i + 8], "little") for i in range(0, len(padded), 8)]
    rows = (words[i : i + 5] for i in range(0, len(words), 5))
    return "".join("    " + " ".join(f"{one:#x}ull," for one in row) + "\n" for row in rows)
