"""The ISA's formula text evaluates to one-to-one maps, and to entries typed here by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator.tensor_cores import maps
from fragir.emulator.tensor_cores.maps import Formula, Metadata, formula, formulas, granularity
from fragir.errors import FragirError


def name(each: Formula) -> str:
    return f"{each.shape}-{each.types[0]}-{each.operand}"


def extents(each: Formula) -> tuple[int, int]:
    """Of the operand's matrix, from the shape's name alone."""
    m, rest = each.shape.removeprefix("m").split("n")
    n, _, k = rest.partition("k")
    operand = each.operand[0]
    sizes = {"a": (m, k), "b": (k, n), "c": (m, n), "d": ("64", "256")}[operand]
    return int(sizes[0]), int(sizes[1])


@pytest.mark.parametrize("each", formulas("DENSE"), ids=name)
def test_dense_maps_are_bijections(each: Formula) -> None:
    rows, cols = extents(each)
    row, col = each.evaluate("row"), each.evaluate("col")
    product = each.evaluate("product") if each.has("product") else np.zeros_like(row)
    products = 4 if each.has("product") else 1
    points = set(zip(product.flat, row.flat, col.flat, strict=True))
    assert points == {(p, r, c) for p in range(products) for r in range(rows) for c in range(cols)}
    assert len(points) == row.size


@pytest.mark.parametrize("each", [f for f in formulas("WGMMA") if f.operand != "e"], ids=name)
def test_wgmma_maps_are_bijections(each: Formula) -> None:
    rows, cols = extents(each)
    row, col = each.evaluate("row", 128), each.evaluate("col", 128)
    points = set(zip(row.flat, col.flat, strict=True))
    assert points == {(r, c) for r in range(rows) for c in range(cols)}


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_every_wgmma_n_uses_the_first_elements(n: int) -> None:
    form = formula("WGMMA", "m64nN", "f16", "d")
    row, col = (form.evaluate(what, 128)[: n // 2] for what in ("row", "col"))
    assert set(zip(row.flat, col.flat, strict=True)) == {
        (r, c) for r in range(64) for c in range(n)
    }


@pytest.mark.parametrize("each", formulas("MATRIX"), ids=name)
def test_matrix_maps_are_bijections(each: Formula) -> None:
    row, col = each.evaluate("row"), each.evaluate("col")
    points = set(zip(row.flat, col.flat, strict=True))
    assert len(points) == row.size == (row.max() + 1) * (col.max() + 1)


@pytest.mark.parametrize("each", [f for f in formulas("SPARSE") if f.operand == "a"], ids=name)
def test_sparse_a_covers_every_chunk(each: Formula) -> None:
    """A register stands for twice as many columns, firstcol to lastcol, as it has elements."""
    first, last = each.evaluate("firstcol"), each.evaluate("lastcol")
    per = {"f16": 2, "tf32": 1, "s8": 4, "s4": 8}[each.types[0]]
    assert (last - first + 1 == 2 * per).all()
    rows, cols = extents(each)
    points = set(zip(each.evaluate("row").flat, first.flat, strict=True))
    assert points == {(r, c) for r in range(rows) for c in range(0, cols, 2 * per)}


@pytest.mark.parametrize(
    "each",
    [f for part in ("SPARSE", "WGMMA") for f in formulas(part) if f.operand == "e"],
    ids=name,
)
def test_metadata_names_every_chunk_once(each: Formula) -> None:
    lanes = 128 if each.shape.startswith("m64") else 32
    rows = 64 if lanes == 128 else 16
    k = int(each.shape.rpartition("k")[2])
    chunk = granularity(each.types[0], packed=each.types[0] == "s4").chunk
    for selector in (0, 1):
        selected = each.evaluate("selected", lanes, F=selector).astype(bool)
        row, number = (each.evaluate(what, lanes)[selected] for what in ("row", "chunk"))
        if not selected.any():
            continue
        points = list(zip(row, number, strict=True))
        assert len(points) == len(set(points)) == rows * k // chunk


# (part, shape, type, operand): {(element, lane): (row, col)}, typed from the figures of the ISA.
ENTRIES: dict[tuple[str, str, str, str], dict[tuple[int, int], tuple[int, int]]] = {
    ("DENSE", "m16n8k16", "f16", "a"): {(0, 0): (0, 0), (3, 5): (9, 3), (6, 31): (15, 14)},
    ("DENSE", "m16n8k16", "bf16", "b"): {(0, 0): (0, 0), (1, 5): (3, 1), (2, 31): (14, 7)},
    ("DENSE", "m16n8k16", "f16", "c"): {(0, 4): (1, 0), (2, 31): (15, 6), (3, 0): (8, 1)},
    ("DENSE", "m16n8k8", "tf32", "a"): {(1, 0): (8, 0), (2, 0): (0, 4), (3, 31): (15, 7)},
    ("DENSE", "m16n8k8", "f16", "a"): {(1, 0): (0, 1), (2, 0): (8, 0), (3, 31): (15, 7)},
    ("DENSE", "m16n8k32", "s8", "a"): {(4, 0): (8, 0), (8, 1): (0, 20), (15, 31): (15, 31)},
    ("DENSE", "m16n8k32", "s4", "a"): {(7, 0): (0, 7), (8, 0): (8, 0), (15, 31): (15, 31)},
    ("DENSE", "m16n8k64", "e2m1", "b"): {(0, 5): (8, 1), (8, 0): (32, 0), (15, 31): (63, 7)},
    ("DENSE", "m16n8k256", "b1", "a"): {(32, 0): (8, 0), (63, 0): (8, 31), (127, 31): (15, 255)},
    ("DENSE", "m16n8k16", "f64", "a"): {(1, 0): (8, 0), (2, 0): (0, 4), (7, 31): (15, 15)},
    ("DENSE", "m16n8k16", "f64", "b"): {(1, 0): (4, 0), (3, 31): (15, 7)},
    ("DENSE", "m8n8k4", "f64", "c"): {(1, 0): (0, 1), (0, 31): (7, 6)},
    ("DENSE", "m8n8k4", "f16", "a.row"): {(2, 1): (1, 2), (2, 17): (5, 2)},
    ("DENSE", "m8n8k4", "f16", "a.col"): {(2, 1): (2, 1), (2, 17): (6, 1)},
    ("DENSE", "m8n8k4", "f16", "b.row"): {(2, 1): (1, 2), (2, 17): (1, 6)},
    ("DENSE", "m8n8k4", "f16", "b.col"): {(2, 1): (2, 1), (2, 17): (2, 5)},
    ("DENSE", "m8n8k4", "f16", "c.f16"): {(5, 3): (3, 5), (5, 19): (7, 5)},
    ("DENSE", "m8n8k4", "f16", "c.f32"): {(5, 3): (1, 7), (2, 16): (6, 0)},
    ("WGMMA", "m64nN", "f16", "d"): {(0, 32): (16, 0), (2, 0): (8, 0), (6, 127): (63, 14)},
    ("WGMMA", "m64nNk32", "s8", "a"): {(4, 0): (8, 0), (8, 33): (16, 20)},
    ("MATRIX", "m8n8", "b16", "ld"): {(1, 5): (1, 3)},
    ("MATRIX", "m8n8", "b16", "ld.trans"): {(1, 5): (3, 1)},
}


@pytest.mark.parametrize("key", ENTRIES, ids="-".join)
def test_entries_typed_by_hand(key: tuple[str, str, str, str]) -> None:
    form = formula(*key)
    lanes = 128 if key[0] == "WGMMA" else 32
    row, col = form.evaluate("row", lanes), form.evaluate("col", lanes)
    for place, point in ENTRIES[key].items():
        assert (row[place], col[place]) == point


def test_errata_are_named_and_necessary() -> None:
    found = {(f.shape, f.types[0]): f for f in formulas("DENSE") if f.errata}
    assert set(found) == {("m16n8k16", "f64"), ("m16n8k256", "b1")}
    wrong, right = found["m16n8k256", "b1"].errata[0]
    assert wrong in found["m16n8k256", "b1"].text
    assert right == "(threadID_in_group * 32) + (i & 0x1F)"


def test_four_products_of_m8n8k4() -> None:
    product = formula("DENSE", "m8n8k4", "f16", "a.row").evaluate("product")[0]
    assert product.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [0] * 4 + [1] * 4 + (
        [2] * 4 + [3] * 4
    )


def test_errors_name_the_formula() -> None:
    with pytest.raises(FragirError, match="no dense fragment m16n8k3 f16 a"):
        formula("DENSE", "m16n8k3", "f16", "a")
    form = formula("DENSE", "m16n8k16", "f16", "a")
    with pytest.raises(FragirError, match=r"9\.7\.14\.5\.8.*`depth` is not defined"):
        form.evaluate("depth")


def test_an_alternative_must_hold_for_every_element(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n[1.2] m1n1k1 f16 : a 4\nrow = i for ai where i < 3\ncol = 0 for a0 and a1\n"
    monkeypatch.setattr(maps.maps_data, "BROKEN", text, raising=False)
    form = formulas("BROKEN")[0]
    with pytest.raises(FragirError, match="no alternative of `row`"):
        form.evaluate("row")
    with pytest.raises(FragirError, match="no alternative of `col`"):
        form.evaluate("col")


def test_metadata_of_a_tf32_chunk() -> None:
    form = formula("SPARSE", "m16n8k8", "tf32", "e")
    metadata = Metadata(form, granularity("tf32", False), 16, 8)
    words = np.zeros((1, 32), np.uint32)
    words[:, 0::4] = 0x444E_444E  # chunk 0 keeps its second column, the others their first
    columns = metadata.columns(words, 0)[:, :, 0]
    assert columns.T.tolist() == [[1, 2, 4, 6]] * 16
