"""What a schedule of a matrix product says."""

from __future__ import annotations

from typing import NamedTuple


class Schedule(NamedTuple):
    """One block computes tile_m x tile_n of C, tile_k at a time."""

    tile: tuple[int, int, int]
    warps: tuple[int, int]  # warpgroups where wgmma is used
    stages: int
    wgmma: bool
    target: str
    turned: bool = False
    """Whether C^T = B^T A^T is formed: wgmma reads its first operand from registers."""
    transposes: bool = False
    """Whether wgmma's second operand is transposed in shared memory: it, too, lies across K."""
    roles: bool = False
    """Whether warps of their own fetch, by the tensor memory accelerator."""
    cluster: int = 1
    """Blocks that share what they fetch of B."""
    consumers: int = 1
    """Roles that multiply, each of `warps`, whole tiles by turns."""
    order: str | None = None
    """Of the tiles, as `frag.for_tiles` says it."""
    parts: tuple[int, bool] | None = None
    """Into how many parts sums are cut, and whether that is at most so many, in even shares."""
    remark: str | None = None
    """What the program's author is to know of it."""
    staged: bool = True
    """With roles: whether C leaves through shared memory, as far as the cost model knows."""

    @property
    def threads(self) -> int:
        return self.warps[0] * self.warps[1] * (128 if self.wgmma else 32)
