"""A Python module that launches a kernel: `ctypes` and the CUDA driver, nothing of fragir."""

from __future__ import annotations

import base64
import math
import pprint
import textwrap

from fragir.launchers.plan import (
    Array,
    BareAddress,
    ByValue,
    LaunchPlan,
    Map,
    Parameter,
    Size,
    formula,
    scalar_type,
)

_TEXT = '''\
"""Launches {entry} ({target}) through the CUDA driver; made by fragir, which it does not need.

    import {module}
    {module}.launch({call})

Arrays lie on the GPU: objects of `__cuda_array_interface__`, as PyTorch's and CuPy's.
Grid, in blocks of {threads} threads: {grid}.
"""

import base64
import ctypes
import math

ENTRY, TARGET = {entry!r}, {target!r}
BLOCK, CLUSTER, SHARED = {block}, {cluster}, {shared}
WHOLE_CLUSTERS = {whole_clusters}  # whether a grid may be rounded up to whole clusters
# for x, y and z: ((size, divisor), ...), at most as many as run at once?, in multiples of
GRID = {counts}
PROMISES = {promises}  # of what sizes are multiples
COUNTS = {products}  # numbers times sizes, which the kernel counts in 32 bits
PARAMETERS = {parameters}
CONSTANTS = {constants}  # arrays that are put on the GPU with the first launch

_MAX_SHARED, _NON_PORTABLE, _CLUSTER_DIMENSION, _MULTIPROCESSORS = 8, 14, 4, 16


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    ]


def _driver():
    if not hasattr(_driver, "found"):
        _driver.found = ctypes.CDLL("libcuda.so.1")
    return _driver.found


def _do(name, *arguments):
    """Calls the driver; RuntimeError with its words where it fails."""
    code = getattr(_driver(), name)(*arguments)
    if code:
        words = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(words))
        raise RuntimeError(f"{{name}}: {{(words.value or b'unknown error').decode()}} ({{code}})")


def _context():
    """Makes sure that a context is current: the caller's, or that of the first GPU."""
    context = ctypes.c_void_p()
    _do("cuInit", 0)
    _do("cuCtxGetCurrent", ctypes.byref(context))
    if not context:
        device = ctypes.c_int()
        _do("cuDeviceGet", ctypes.byref(device), 0)
        _do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        _do("cuCtxSetCurrent", context)
    return context.value


def load(_loaded={{}}):
    """The function, loaded into the current context once."""
    context = _context()
    if context not in _loaded:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        _do("cuModuleLoadData", ctypes.byref(module), base64.b64decode(CUBIN))
        _do("cuModuleGetFunction", ctypes.byref(function), module, ENTRY.encode())
        if SHARED:
            _do("cuFuncSetAttribute", function, _MAX_SHARED, SHARED)
        if math.prod(CLUSTER) > 8:
            _do("cuFuncSetAttribute", function, _NON_PORTABLE, 1)
        _loaded[context] = function
    return _loaded[context]


def _config(grid, stream):
    config = _Config(*grid, *BLOCK, SHARED, stream, None, 0)
    if math.prod(CLUSTER) > 1:
        attribute = _Attribute(_CLUSTER_DIMENSION)
        attribute.value[:3] = CLUSTER
        config.attributes, config.count = ctypes.pointer(attribute), 1
    return config


def resident(function):
    """How many blocks run at once on the current device."""
    found = ctypes.c_int()
    if math.prod(CLUSTER) > 1:
        config = _config(CLUSTER, None)
        _do("cuOccupancyMaxActiveClusters", ctypes.byref(found), function, ctypes.byref(config))
        return math.prod(CLUSTER) * max(1, found.value)
    device, count = ctypes.c_int(), ctypes.c_int()
    _do("cuCtxGetDevice", ctypes.byref(device))
    _do("cuDeviceGetAttribute", ctypes.byref(count), _MULTIPROCESSORS, device)
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    _do(name, ctypes.byref(found), function, math.prod(BLOCK), ctypes.c_size_t(SHARED))
    return count.value * max(1, found.value)


def grid(function=None, **sizes):
    """The blocks along x, y and z; `function` where the kernel asks how many run at once."""
    counts = []
    for factors, limited, cluster in GRID:
        count = 1
        for size, divisor in factors:
            count *= -(-(size if isinstance(size, int) else sizes[size]) // divisor)
        if limited and count:
            count = min(count, max(1, resident(function) // cluster) * cluster)
        counts.append(count)
    whole = tuple(-(-count // side) * side for count, side in zip(counts, CLUSTER))
    if whole != tuple(counts) and not WHOLE_CLUSTERS:
        raise ValueError(f"a grid of {{counts}} blocks is not made of clusters of {{CLUSTER}}")
    return whole


def _number(factors, sizes):
    return math.prod(one if isinstance(one, int) else sizes[one] for one in factors)


def _bound(arguments):
    """Names of sizes and what the arrays say they are; ValueError where they contradict."""
    sizes = {{}}
    for (kind, name, *rest), value in zip(_given(), arguments):
        if kind != "array":
            continue
        _, bits, shape, strides, _ = rest
        there = value.__cuda_array_interface__
        if len(there["shape"]) != len(shape):
            raise ValueError(f"{{name}} has {{len(there['shape'])}} dimensions, not {{len(shape)}}")
        for wanted, found in zip(shape, there["shape"]):
            if (sizes.setdefault(wanted, found) if isinstance(wanted, str) else wanted) != found:
                found = there["shape"]
                raise ValueError(f"{{name}} has shape {{found}}, not {{shape}} with {{sizes}}")
        steps = there.get("strides")
        for wanted, found in zip(strides, steps or ()):
            if len(wanted) == 1 and isinstance(wanted[0], str) and wanted[0] not in sizes:
                sizes[wanted[0]] = found * 8 // bits
        for extent, wanted, found in zip(there["shape"], strides, steps or ()):
            given = 0 in there["shape"] or _number(wanted, sizes) * bits == found * 8
            if extent > 1 and not given:
                raise ValueError(f"{{name}} has strides of {{steps}} bytes; pass a contiguous copy")
    for name, divisor in PROMISES.items():
        if sizes[name] % divisor:
            raise ValueError(f"{{name}} = {{sizes[name]}} is no multiple of {{divisor}}")
    for number, names in (*((1, (name,)) for name in sizes), *COUNTS):
        if number * math.prod(sizes[name] for name in names) >= 2**31:
            words = " x ".join([*([str(number)] if number > 1 else []), *names])
            raise ValueError(f"{{words}} is 2^31 or more with {{sizes}}; pass the arrays in parts")
    for kind, name, *rest in _given():
        shape, least = (rest[2], rest[4]) if kind == "array" else ((), ())
        for found, (size, divisor) in zip(shape, least):
            if _number((found,), sizes) < -(-_number((size,), sizes) // divisor):
                raise ValueError(f"{{name}} is too small: {{found}} < {{size}} / {{divisor}}")
    return sizes


def _given():
    kinds = "array", "scalar", "pointer"
    return [one for one in PARAMETERS if one[0] in kinds and one[1] not in CONSTANTS]


def _constant(name, _there={{}}):
    """The address of a constant in the current context."""
    key = _context(), name
    if key not in _there:
        data, address = base64.b64decode(CONSTANTS[name]), ctypes.c_uint64()
        _do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(data)))
        _do("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        _there[key] = address.value
    return _there[key]


def _map(parameter, addresses, sizes):
    """The 128 bytes of a tensor map, aligned to 64."""
    _, _, array, kind, box, swizzle, promotion, turned, written = parameter
    _, _, _, bits, shape, strides, _ = next(p for p in PARAMETERS if p[:2] == ("array", array))
    order = list(range(len(shape)))
    if turned:
        order[-2:] = order[-1], order[-2]
    order.reverse()
    room = (ctypes.c_ubyte * 192)()
    at = -(-ctypes.addressof(room) // 64) * 64
    rank = len(order)
    extents = [_number((shape[i],), sizes) for i in order]
    address = addresses[array]
    if written and 0 not in extents and extents[0] * bits % 128:
        raise ValueError(f"rows of {{array}} are written by TMA, in whole chunks of 16 bytes")
    if 0 in extents:  # ones, of zeros
        extents, address = [max(1, 8 // bits), *[1] * (rank - 1)], _zeros()
    row = -(-extents[0] * bits // 128) * 16  # the stride of a dimension of one element
    steps = [_number(strides[i], sizes) * bits // 8 for i in order[1:]]
    steps = [row if extent == 1 else step for extent, step in zip(extents[1:], steps)]
    _do(
        "cuTensorMapEncodeTiled",
        *(ctypes.c_void_p(at), kind, rank, ctypes.c_void_p(address)),
        *((ctypes.c_uint64 * rank)(*extents), (ctypes.c_uint64 * rank)(*steps)),
        (ctypes.c_uint32 * rank)(*reversed(box)),
        *((ctypes.c_uint32 * rank)(*[1] * rank), 0, swizzle, promotion, 0),
    )
    return room, at


def _zeros(_kept=[]):
    """The address of 16 bytes of zeros on the GPU."""
    if not _kept:
        address = ctypes.c_uint64()
        _do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(16))
        _do("cuMemsetD8_v2", address, 0, ctypes.c_size_t(16))
        _kept.append(address.value)
    return _kept[0]


def launch(*arguments, stream=0):
    """Starts the kernel on arrays and numbers, in the order of {order}.

    Halves are passed as the bits that they have. Returns before it has ended.
    """
    given = _given()
    if len(arguments) != len(given):
        names = ", ".join(one[1] for one in given)
        raise TypeError(f"{{ENTRY}} takes ({{names}}), not {{len(arguments)}} arguments")
    sizes = _bound(arguments)
    function = load()
    blocks = grid(function, **sizes)
    if 0 in blocks:
        return
    values, kept, addresses = dict(zip((one[1] for one in given), arguments)), [], {{}}
    for parameter in PARAMETERS:
        kind, name = parameter[:2]
        if kind == "array":
            held = name in CONSTANTS
            there = None if held else values[name].__cuda_array_interface__["data"]
            addresses[name] = _constant(name) if held else there[0]
            value = ctypes.c_uint64(addresses[name])
        elif kind == "pointer":
            value = ctypes.c_uint64(values[name])
        elif kind == "size":
            value = ctypes.c_int32(sizes[parameter[2]])
        elif kind == "scalar":
            value = getattr(ctypes, parameter[2])(values[name])
        else:
            room, at = _map(parameter, addresses, sizes)
            kept.append((room, at))
            continue
        kept.append((value, ctypes.addressof(value)))
    pointers = (ctypes.c_void_p * max(1, len(kept)))(*(at for _, at in kept))
    config = _config(blocks, stream)
    _do("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)


CUBIN = """
{cubin}
"""
'''

_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
#: CUtensorMapDataType of cuda.h
_TYPES = {
    **{"UINT8": 0, "UINT16": 1, "UINT32": 2, "INT32": 3, "UINT64": 4, "INT64": 5, "FLOAT16": 6},
    **{"FLOAT32": 7, "FLOAT64": 8, "BFLOAT16": 9, "16U4_ALIGN8B": 13},
}


def program(plan: LaunchPlan, cubin: bytes) -> str:
    """The text of the module, with the cubin in it."""
    names = ", ".join(one.name for one in plan.arguments)
    counts = tuple(
        (tuple((one.size, one.divisor) for one in count.factors), count.resident, count.cluster)
        for count in plan.grid
    )
    encoded = base64.b64encode(cubin).decode()
    return _TEXT.format(
        entry=plan.entry,
        target=plan.target,
        module="".join(c if c.isalnum() else "_" for c in plan.entry),
        call=names,
        order=names or "nothing",
        threads=math.prod(plan.block),
        grid=", ".join(map(formula, plan.grid)),
        block=plan.block,
        cluster=plan.cluster,
        whole_clusters=plan.whole_clusters,
        shared=plan.shared,
        counts=counts,
        promises=plan.promises,
        products=plan.counts,
        parameters=pprint.pformat([_parameter(one) for one in plan.parameters], width=100),
        constants=pprint.pformat(
            {name: base64.b64encode(data).decode() for name, data in plan.constants}, width=100
        ),
        cubin=textwrap.fill(encoded, 100),
    )


def _parameter(one: Parameter) -> tuple[object, ...]:
    match one:
        case Array():
            return "array", one.name, one.type, one.bits, one.shape, one.strides, one.least
        case ByValue():
            return "scalar", one.name, scalar_type(one)[1]
        case Size():
            return "size", one.name, one.of
        case Map():
            kind = _TYPES[one.type]
            swizzle, promotion = _SWIZZLES[one.swizzle], _PROMOTIONS[one.promotion]
            return (
                "map",
                one.name,
                one.array,
                kind,
                one.box,
                swizzle,
                promotion,
                one.turned,
                one.written,
            )
        case BareAddress():
            return "pointer", one.name
