"""How a launch is told to the driver: blocks, threads, clusters, the stream."""

from __future__ import annotations

from typing import Any

from fragir.errors import FragirError

Extent = tuple[int, ...]


def launch_config(
    cuda: Any,
    grid: Extent,
    block: Extent,
    cluster: Extent,
    shared: int,
    stream: int,
    cooperative: bool,
) -> Any:
    """A `CUlaunchConfig` of blocks, threads and blocks of a cluster."""
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared
    config.hStream = stream
    attributes: list[Any] = []
    names = cuda.CUlaunchAttributeID
    if cluster != (1, 1, 1):
        attribute = cuda.CUlaunchAttribute()
        attribute.id = names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimension = attribute.value.clusterDim
        dimension.x, dimension.y, dimension.z = cluster
        attributes.append(attribute)
    if cooperative:
        attribute = cuda.CUlaunchAttribute()
        attribute.id = names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if attributes:
        config.attrs = attributes
        config.numAttrs = len(attributes)
    return config


def full_extent(extent: Extent) -> Extent:
    """An extent in all three dimensions."""
    full = (*extent, 1, 1, 1)[:3]
    if not 1 <= len(extent) <= 3 or min(full) < 1:
        raise FragirError(f"{extent} is no size of a grid, a block or a cluster")
    return full


def stream_handle(stream: object) -> int:
    """The handle of a stream; 0 is the default stream."""
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version_and_handle: Any = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    if isinstance(stream, int):
        return stream
    raise FragirError(f"a {type(stream).__name__} is no CUDA stream")
