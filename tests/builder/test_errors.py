"""What is refused, with the words and the place in the user's program."""

from __future__ import annotations

import linecache
from itertools import count

import pytest

from fragir import FragirError

BEFORE = """\
from fragir import e4m3, f16, f32, f64, fragment, index, kernel, s32
with kernel("k", warps=(1, 1)) as k:
    a = k.memory("a", f16, ("m", 64))
    b = k.memory("b", f16, (64, "n"))
    c = k.memory("c", f32, ("m", "n"))
    s = k.scalar("s", f32)
    i = k.block_id("x")
    x = k.load(a, (0, 0), shape=(16, 64))
    y = k.load(b, (0, 0), shape=(64, 8))
    z = k.fill(0, (16, 8), f32)
"""
_number = count()

# (the statements that follow, line and column, the sentence)
CASES = [
    # operators
    ("x + z", "11:5", "+ of <tile 16x64 of f16> and <tile 16x8 of f32>: the types differ"),
    ("z + k.fill(0, (8, 8), f32)", "11:5", "<tile 16x8 of f32> and <tile 8x8 of f32> have no"),
    ("s + i", "11:5", "+ of <f32 s> and <index bx>: the types differ (use .cast(...))"),
    ("(i + 1) * 0.5", "11:5", "0.5 is no index (write a whole number, or cast to f32)"),
    ("i / 2", "11:5", "there is no / of index (cast to f32 first; // divides integers)"),
    ("s // 2", "11:5", "there is no // of f32 (it is for integers; / divides floats)"),
    ("i * 3_000_000_000", "11:5", "3000000000 does not fit index (32 bits)"),
    ("z + 'x'", "11:5", "'x' cannot be computed with (write scalars, tiles and Python's numbers)"),
    ("k.max(1, 2)", "11:5", "max of numbers alone is no operation of the kernel (give one of them"),
    ("k.exp(i)", "11:5", "there is no exp of index (cast first)"),
    ("(i < 3) + 1", "11:5", "there is no + of condition (conditions take & | ^ ~, select and if_)"),
    ("k.select(s, z, 1)", "11:5", "select's first operand is <f32 s>, it must be a condition"),
    ("if i < 3: pass", "11:8", "<condition> is known when the kernel runs, not while it is built"),
    ("for _ in range(i): pass", "11:14", "<index bx> is known when the kernel runs, not while it"),
    (
        "k.store(z < 1, c, (0, 0))",
        "11:5",
        "the tile holds condition, the memory f32 (store tile",
    ),
    ("z.sum(2)", "11:5", "axis is 2, but <tile 16x8 of f32> has 2 dimensions"),
    (
        "z.all(0)",
        "11:5",
        "<tile 16x8 of f32>: f32 is not combined by and; it is by add, mul",
    ),
    ("z.broadcast(0, 1024)", "11:5", "a tile of 1024x16x8: it takes 131072 registers, a block has"),
    ("k.exp(z.broadcast(2, 1024))", "11:11", "a tile of 16x8x1024: it takes 131072 registers"),
    (
        "z.cast(e4m3).max(0)",
        "11:5",
        "<tile 16x8 of e4m3>: f8E4M3FN is not combined; cast",
    ),
    (
        "z.broadcast(4, 2)",
        "11:5",
        "axis is 4, but <tile 16x8 of f32> with one more has 3 dim",
    ),
    ("z.broadcast(0, 0)", "11:5", "size is 0, it must be 1 or more"),
    ("z + z.sum(1)", "11:5", "<tile 16x8 of f32> and <tile 16 of f32> have no shape in common (di"),
    ("z.sum(1).broadcast_to((4, 8))", "11:5", "<tile 16 of f32> cannot be repeated to 4x8"),
    ("z.broadcast_to((0, 8))", "11:5", "(0, 8) is no shape (write positive numbers that Python kn"),
    ("z.sum(keepdims=True)", "11:5", "keepdims without an axis leaves nothing of a tile (give the"),
    ("k.iota(1, (16,))", "11:5", "axis is 1, but a tile of shape (16,) has 1 dimension"),
    ("s.cast('f32')", "11:5", "a scalar cannot be 'f32' (write fragir.f32, fragir.s32, fragir.ind"),
    ("z.cast(index)", "11:5", "a tile cannot hold index (write one of fragir.f16, fragir.bf16, f"),
    ("z.named('5')", "11:5", "'5' is no name of a value (write letters, digits and _)"),
    # other shapes
    (
        "x.transpose(0, 0)",
        "11:5",
        "(0, 0) is no order of the dimensions of <tile 16x64 of f16> (wr",
    ),
    ("x.transpose(0, 2)", "11:5", "an axis is 2, there is no such one of 2 dimensions"),
    ("x.reshape(3, -1)", "11:5", "<tile 16x64 of f16> has 1024 elements and cannot be 3x-1"),
    ("x.reshape(2, 2, 2, 2, 64)", "11:5", "a tile has one to four dimensions, not 5"),
    ("x.split()", "11:5", "<tile 16x64 of f16> is not split (its last size must be 2: tile.resh"),
    ("x[0, 0]", "11:5", "one element of <tile 16x64 of f16> is no tile (keep a dimension, as in "),
    ("x[16]", "11:5", "an index is 16, there is no such one of 16 places"),
    ("x[i]", "11:5", "<index bx> is known when the kernel runs (parts of tiles have fixed places)"),
    (
        "x[i:]",
        "11:5",
        "<index bx> is known when the kernel runs (slices of tiles have fixed places",
    ),
    ("x[::-1]", "11:5", "the step of a slice of a tile is -1, it must be positive"),
    ("x[3:3]", "11:5", "3:3 selects nothing of 16 places of <tile 16x64 of f16>"),
    ("x[0, 0, 0]", "11:5", "<tile 16x64 of f16> has 2 dimensions, and 3 are indexed"),
    ("list(x)", "11:5", "<tile 16x64 of f16> is no list (tile[0] is its first row, ti"),
    ("k.join(x, z)", "11:5", "tiles of f16 and f32 have no elements in common (use .cast(...))"),
    ("k.join(x, y)", "11:5", "<tile 16x64 of f16> and <tile 64x8 of f16> differ in shape"),
    ("k.concatenate([x, y])", "11:5", "16x64 and 64x8 differ besides dimension 0"),
    ("k.concatenate([x, x], 2)", "11:5", "axis is 2, but a tile of 16x64 has 2 dimensions"),
    (
        "k.concatenate([])",
        "11:5",
        "[] are no tiles to concatenate (write k.concatenate([a, b], 1))",
    ),
    ("k.concatenate([x, 3])", "11:5", "3 is no tile (k.load(...) and k.fill(...) make tiles)"),
    # arguments and the launch
    ("k.memory('a', f32, (3,))", "11:5", "k has an argument a already"),
    ("k.memory('d', 'f32', (3,))", "11:5", "the memory d cannot hold 'f32' (write one of fragir."),
    ("k.memory('d', f32, (0,))", "11:5", "0 is no size of d (write a positive number, or a name "),
    ("k.memory('d', f32, (3,), strides=(3, 1))", "11:5", "d has 1 dimensions and 2 strides"),
    ("k.memory('d e', f32, (3,))", "11:5", "'d e' is no name for an argument (write letters, dig"),
    ("k.scalar('t', 3)", "11:5", "the scalar t cannot be 3 (write fragir.f32, fragir.s32, "),
    ("k.size('q')", "11:5", "no argument has a size q (the names are m, n)"),
    ("k.grid('q / 3')", "11:5", "the grid needs the size q; the arguments name m, n (name a dim"),
    ("k.grid('n - 3')", "11:5", '\'n - 3\' is no extent of a grid (write a number, "n" or "n / 1'),
    ("k.grid(1); k.grid(2)", "11:16", "the grid was given already at line 11"),
    ("k.block_id('w')", "11:5", 'a grid has no dimension \'w\' (write "x", "y" or "z")'),
    # memory
    ("k.store(z, a, (0, 0))", "11:5", "the tile holds f32, the memory f16 (store tile.cast(fragir"),
    ("k.store(a, c, (0, 0))", "11:5", "<memory a ?x64 of f16> is no tile (k.load(...) and k.fill"),
    ("k.store(z, z, (0, 0))", "11:5", "<tile 16x8 of f32> is no memory (k.memory(...) and k.shar"),
    ("k.load(a, (0,), shape=(16, 8))", "11:5", "frag.load: memref<?x64xf16> takes 2 indices, one"),
    ("k.load(a, 0, shape=(16, 8))", "11:5", "0 is no list of indices (write (row, column))"),
    ("k.load(a, (0, s), shape=(16, 8))", "11:5", "an index is <f32 s>; it must be index (use .cas"),
    (
        "k.load(a, (0, 1.5), shape=(16, 8))",
        "11:5",
        "an index is 1.5; it must be a whole number (wr",
    ),
    ("k.load(a, (0, 0), shape=(16, i))", "11:5", "(16, <index bx>) is no shape (write positive nu"),
    ("k.shared((64, 64), f16, swizzle=16)", "11:5", "swizzle is 16, it must be 0, 32, 64 or 128 b"),
    (
        'k.shared((64, 64), f16, layout="row [64:8] col [64:1]")',
        "11:5",
        "row [64:8] col [64:1] puts several elements at one place",
    ),
    ("k.copy(a, (0, 0), b)", "11:5", "frag.copy copies from global memory to #frag.shared memory"),
    ("k.wait(-1)", "11:5", "frag.wait takes a number of groups, 0 or more"),
    # products
    ("k.mma(y, x, z)", "11:5", "mma: 64x8 times 16x64 plus 16x8 (a is M x K, b is K x N, c is M "),
    ("k.mma(x, y, z.cast(f64))", "11:5", "frag.mma: there is no m16n8k"),
    (
        "k.mma(x, y, z, using='m16n8k5.f16')",
        "11:5",
        "frag.mma: m16n8k5.f16 does not divide the til",
    ),
    ("k.wgmma(x, b, z)", "11:5", "wgmma: b is <memory b 64x? of f16>; wgmma reads shared memory "),
    (
        "k.convert(z, fragment('m16n8k16.f16', 'q'))",
        "11:18",
        "no operand 'q' (write a, b or c (d h",
    ),
    (
        "k.convert(z, fragment('m16n8k16.f16', 'a'))",
        "11:5",
        "8 columns of operand a are no multiple",
    ),
    ("k.matmul(a, b, into=c)", "11:5", "the kernel's warps are for tiles (give warps=... to k.mat"),
    # functions
    ("k.map(lambda p: p, z, z)", "11:5", "the function is called with 2 scalars: <lambda>() takes"),
    ("k.map(lambda p: 3, z)", "11:5", "the function returns 3, it must return a scalar of the ker"),
    ("k.map(lambda p: k.fill(0, (8, 8), f32), z)", "11:21", "frag.fill in an elementwise function"),
    ("k.fill(s, (16, 8), f16)", "11:5", "the value is <f32 s>; it must be f16 (use .cast(...))"),
    # loops and branches
    ("k.loop(0, 4, 0)", "11:5", "a loop's step is 0, it must be positive"),
    ("k.loop(0, 4, acc=0.0)", "11:5", "acc begins as 0.0, which has no type (write k.constant(0.0"),
    ("k.loop(0, 4, index=0)", "11:5", "loops have a index of their own (call the value something"),
    ("k.loop(0, 4, acc=z).acc", "11:5", "the loop has not begun (write `with ... as` before it)"),
    ("k.if_(True)", "11:5", "1 is no condition of the kernel (compare scalars; what Python knows"),
    (
        "with k.loop(0, 4, acc=z) as loop:\n        loop.total = z",
        "12:9",
        "this loop carries no total, but acc (name it where the loop starts: total=first value)",
    ),
    (
        "with k.loop(0, 4, acc=z) as loop:\n        loop.acc = x",
        "12:9",
        "acc carries <tile 16x8 of f32>, not <tile 16x64 of f16> (shape and type must stay",
    ),
    (
        "with k.loop(0, 4, acc=z) as loop:\n        loop.acc = 1",
        "12:9",
        "acc carries a tile, not the number 1 (k.fill(...) makes a tile)",
    ),
    (
        "with k.loop(0, 4) as loop:\n        t = loop.index + 1\n    t * 2",
        "13:5",
        "<index t> was made in the loop at line 11, which is over (carry it out: name it in",
    ),
    (
        "with k.loop(0, 4, acc=z) as loop:\n        pass\n    loop.acc = z",
        "13:5",
        "the loop is over (assign .acc inside its `with`)",
    ),
    (
        "with k.if_(i < 1) as one:\n        pass\n    k.barrier()\n    with one.else_(): pass",
        "14:10",
        "else_ does not follow its if_ directly",
    ),
    # kernels
    ("k.module", "11:5", "the kernel k is not complete (ask after its `with`)"),
    ("with kernel('o') as o: o.store(z, c, (0, 0))", "11:28", "<tile 16x8 of f32> belongs to the"),
    ("pass\nk.barrier()", "12:1", "the kernel k is not being built here (use it inside `with fra"),
    ("pass\ns + 1", "12:1", "the kernel k is not being built here (use it inside `with fragir.ker"),
    ("pass\nk.__enter__()", "12:1", "the kernel k has been built already"),
    ("kernel('a b')", "11:5", "'a b' is no name for a kernel (write letters, digits and _, as in "),
    ("kernel('a', warps=4)", "11:5", "warps is 4, it must be two positive numbers (write warps="),
]


def run(statements: str) -> str:
    """The file's name, after running a kernel that goes on with these statements."""
    name = f"user{next(_number)}.py"
    source = f"{BEFORE}    {statements}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), {})
    return name


@pytest.mark.parametrize(("statements", "where", "words"), CASES, ids=[c[0] for c in CASES])
def test_refused(statements: str, where: str, words: str) -> None:
    with pytest.raises(FragirError) as caught:
        run(statements)
    error = caught.value
    line, col = map(int, where.split(":"))
    assert (error.line, error.col) == (line, col)
    assert error.file is not None
    assert error.file.startswith("user")
    assert error.sentence.startswith(words)
    assert error.source == f"{BEFORE}    {statements}".splitlines()[line - 1]


def test_whole_message() -> None:
    with pytest.raises(FragirError) as caught:
        run("k.store(k.mma(y, x, z), c, (0, 0))")
    assert str(caught.value).splitlines() == [
        f"{caught.value.file}:11:13: mma: 64x8 times 16x64 plus 16x8 (a is M x K, b is K x N, "
        "c is M x N; k.load(..., transposed=True) turns one)",
        "      k.store(k.mma(y, x, z), c, (0, 0))",
        "              ^",
    ]


@pytest.mark.parametrize(
    ("statements", "line", "words"),
    [
        ("k.store(k.mma(x, y, z) + z.cast(e4m3).cast(f32), c, (0, 0))", 11, "frag.mma: sm_70"),
        (
            "k.store(k.mma(z, k.fill(0, (8, 8), f32), z), c, (0, 0))",
            11,
            "frag.mma: no instruction multiplies f32 by f32",
        ),
    ],
)
def test_compiler_points_at_python(statements: str, line: int, words: str) -> None:
    """What the passes refuse has the place of the Python line, too."""
    with pytest.raises(FragirError) as caught:
        run(f"{statements}\nk.compile('sm_70')")
    assert (caught.value.line, caught.value.message[: len(words)]) == (line, words)
    assert caught.value.source == f"    {statements}"


def test_an_error_leaves_the_kernel_usable() -> None:
    """What was refused leaves nothing behind: the rest still makes a valid kernel."""
    name = run(
        "try: k.mma(y, x, z)\n    except Exception: pass\n"
        "    try: k.store(z, a, (0, 0))\n    except Exception: pass\n"
        "    k.store(k.mma(x, y, z), c, (0, 0))\nk.compile()"
    )
    assert name.startswith("user")
