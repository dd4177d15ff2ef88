"""The fixed parts of a C host program; braces of C are doubled."""

from __future__ import annotations

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
static CUresult {prefix}_fits(int rank, cuuint64_t *extents, cuuint64_t *strides, int bytes,
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
    for (int i = 0; empty && i < rank; i++) extents[i] = 1;
    for (int i = 1; i < rank; i++)
        if (extents[i] == 1) strides[i - 1] = (extents[0] * bytes + 15) / 16 * 16;
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
