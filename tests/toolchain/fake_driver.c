/* A stand-in for libcuda.so.1 with memory of its own: the kernel adds 1 to every byte of its buffers.

   FAKE_CUDA_LOG names a file that gets a line of JSON for each launch and each tensor map;
   FAKE_CUDA_SIZES has the bytes of each parameter; FAKE_CUDA_FAILS a function that fails. */

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct { CUdeviceptr at; size_t size; } blocks[64];
static int count, attributes[32], current;

static CUresult fails(const char *name)
{
    const char *which = getenv("FAKE_CUDA_FAILS");
    return which && !strcmp(which, name) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static FILE *log_file(void) { return fopen(getenv("FAKE_CUDA_LOG"), "a"); }

CUresult cuInit(unsigned int flags) { (void)flags; return fails("cuInit"); }
CUresult cuGetErrorString(CUresult code, const char **words)
{
    *words = code == CUDA_ERROR_INVALID_VALUE ? "invalid argument" : 0;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int number) { *device = number; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 132 : 0;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)(size_t)77;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { (void)device; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)(size_t)(current ? 77 : 0);
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { current = context != 0; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)(size_t)5;
    return memcmp(image, "\177ELF", 4) ? CUDA_ERROR_INVALID_IMAGE : fails("cuModuleLoadData");
}
CUresult cuModuleUnload(CUmodule module) { (void)module; return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)(size_t)6;
    return strcmp(name, "add") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
    (void)function;
    attributes[which] = value;
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *each, CUfunction function, int threads,
                                                     size_t shared)
{
    (void)function;
    *each = shared < 65536 ? 2048 / threads : 1;
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int *found, CUfunction function, const CUlaunchConfig *config)
{
    (void)function;
    *found = config->numAttrs == 1 ? 60 : 0;
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *at, size_t size)
{
    *at = (CUdeviceptr)(size_t)calloc(1, size);
    blocks[count].at = *at;
    blocks[count++].size = size;
    return fails("cuMemAlloc");
}
CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t size)
{
    memset((void *)(size_t)at, value, size);
    return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr at) { (void)at; return CUDA_SUCCESS; }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *host, size_t size)
{
    memcpy((void *)(size_t)to, host, size);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *host, CUdeviceptr from, size_t size)
{
    memcpy(host, (void *)(size_t)from, size);
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) { (void)stream; return CUDA_SUCCESS; }

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra)
{
    const char *sizes = getenv("FAKE_CUDA_SIZES");
    FILE *file = log_file();
    (void)function;
    (void)extra;
    fprintf(file, "{\"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, ", c->gridDimX,
            c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes);
    fprintf(file, "\"allowed\": %d, \"cluster\": [",
            attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]);
    for (unsigned int i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            fprintf(file, "%u, %u, %u", c->attrs[i].value.clusterDim.x,
                    c->attrs[i].value.clusterDim.y, c->attrs[i].value.clusterDim.z);
    fprintf(file, "], \"parameters\": [");
    for (int i = 0; sizes && *sizes; i++) {
        size_t size = strtoul(sizes, (char **)&sizes, 10);
        fprintf(file, i ? ", \"" : "\"");
        for (size_t b = 0; b < size; b++) fprintf(file, "%02x", ((unsigned char *)parameters[i])[b]);
        fprintf(file, "\"");
        for (int k = 0; size == 8 && k < count; k++)
            if (*(CUdeviceptr *)parameters[i] == blocks[k].at)
                for (size_t b = 0; b < blocks[k].size; b++) ((unsigned char *)(size_t)blocks[k].at)[b]++;
        while (*sizes == ' ') sizes++;
    }
    fprintf(file, "]}\n");
    fclose(file);
    return fails("cuLaunchKernelEx");
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *extents, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    FILE *file = log_file();
    (void)address;
    memset(map, 9, sizeof *map);
    fprintf(file, "{\"map\": [%d, %d, %d, %d, %d], \"dims\": [", type, interleave, swizzle, promotion,
            fill);
    for (cuuint32_t i = 0; i < rank; i++)
        fprintf(file, "%s[%llu, %llu, %u, %u]", i ? ", " : "", (unsigned long long)extents[i],
                i ? (unsigned long long)strides[i - 1] : 0ull, box[i], steps[i]);
    fprintf(file, "]}\n");
    fclose(file);
    return CUDA_SUCCESS;
}
