// Flash attention: O = softmax(Q K^T / 8) V, heads of 64 columns, of m queries and n keys, any numbers;
// h query heads share g heads of keys and values, h / g each. With %causal query i sees the keys up to
// i + n - m. %lse is the logarithm of the sum of e^score over a row, for the backward pass; of a query
// that sees no key it is -inf, and its row of O zeros. Four warps take 64 queries; keys and values come
// by 32 through shared memory, one block after the other (forward.py has them a block ahead). The
// largest and the sum of every row are kept while the keys go by; the sums of the first product become
// the operand of the second by another name.
//
//   fragir run examples/attention/forward.mlir --size h=4,g=2,m=100,n=150 --arg causal=1
//   fragir compile examples/attention/forward.mlir --explain-layouts

!memory = memref<?x?x64xf16>
!block = memref<32x64xf16, #frag.shared<swizzle = 128>>
!query = !frag.tile<64x64xf16>
!key = !frag.tile<64x32xf16>
!value = !frag.tile<32x64xf16>
!scores = !frag.tile<64x32xf32>
!weights = !frag.tile<64x32xf16>
!places = !frag.tile<64x32xi32>
!sums = !frag.tile<64x64xf32>
!out = !frag.tile<64x64xf16>
!rows = !frag.tile<64xf32>
!counts = !frag.tile<64xi32>

func.func @attention(%q: !memory {frag.sizes = ["h", "m"]}, %k: !memory {frag.sizes = ["g", "n"]},
                     %v: !memory {frag.sizes = ["g", "n"]}, %o: !memory {frag.sizes = ["h", "m"]},
                     %lse: memref<?x?xf32> {frag.sizes = ["h", "m"]}, %causal: i32)
    attributes {frag.grid = #frag.grid<m by 64, h>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cols = arith.constant 32 : index
  %rows = arith.constant 64 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %further = arith.constant 63 : i32
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -1.0e30 : f32
  // log2(e) / sqrt(64), as 2^x is what the machine has
  %scale = arith.constant 0.18033688011112042 : f32
  %negative = arith.constant -0.18033688011112042 : f32
  %block = frag.block_id x
  %head = frag.block_id y
  %row = arith.muli %block, %rows : index
  %heads = memref.dim %q, %c0 : !memory
  %groups = memref.dim %k, %c0 : !memory
  %each = arith.divui %heads, %groups : index
  %group = arith.divui %head, %each : index
  %m = memref.dim %q, %c1 : !memory
  %n = memref.dim %k, %c1 : !memory
  %mi = arith.index_cast %m : index to i32
  %ni = arith.index_cast %n : index to i32
  %rowi = arith.index_cast %row : index to i32
  // query i of the block sees the keys before %reach + i, and before n
  %is_causal = arith.cmpi ne, %causal, %none : i32
  %less = arith.subi %one, %mi : i32
  %later = arith.select %is_causal, %less, %none : i32
  %all = arith.addi %rowi, %ni : i32
  %reach = arith.addi %all, %later : i32
  %i = frag.iota dim 0 : !counts
  %seen = frag.map %i : !counts -> !counts {
  ^bb0(%u: i32):
    %before = arith.addi %u, %reach : i32
    %r = arith.minsi %before, %ni : i32
    frag.yield %r : i32
  }
  %last = arith.addi %reach, %further : i32
  %most = arith.minsi %last, %ni : i32
  %some = arith.maxsi %most, %none : i32
  %end = arith.index_cast %some : i32 to index
  %ks = memref.alloc() : !block
  %vs = memref.alloc() : !block
  %Q = frag.load %q[%head, %row, 0] masked : !memory -> !query
  %m0 = frag.fill %least : !rows
  %l0 = frag.fill %zero : !rows
  %a0 = frag.fill %zero : !sums
  %M, %L, %A = scf.for %t = %c0 to %end step %cols
      iter_args(%m1 = %m0, %l1 = %l0, %a1 = %a0) -> (!rows, !rows, !sums) {
    frag.barrier
    frag.copy async %k[%group, %t, 0] to %ks[] masked : !memory to !block
    frag.copy async %v[%group, %t, 0] to %vs[] masked : !memory to !block
    frag.commit
    frag.wait 0
    frag.barrier
    %z = frag.fill %zero : !scores
    %K = frag.load %ks[0, 0] transposed : !block -> !key
    %s = frag.mma %Q, %K, %z : !query, !key, !scores -> !scores
    %at = arith.index_cast %t : index to i32
    %left = frag.map %seen : !counts -> !counts {
    ^bb0(%x: i32):
      %r = arith.subi %x, %at : i32
      frag.yield %r : i32
    }
    %lefts = frag.broadcast %left along 1 : !counts -> !places
    %j = frag.iota dim 1 : !places
    %masked = frag.map %s, %j, %lefts : !scores, !places, !places -> !scores {
    ^bb0(%x: f32, %u: i32, %end_of_row: i32):
      %low = arith.constant 0xFF800000 : f32
      %inside = arith.cmpi slt, %u, %end_of_row : i32
      %r = arith.select %inside, %x, %low : f32
      frag.yield %r : f32
    }
    %largest = frag.reduce max dim 1 %masked : !scores -> !rows
    %m2 = frag.map %m1, %largest : !rows, !rows -> !rows {
    ^bb0(%x: f32, %y: f32):
      %r = arith.maximumf %x, %y : f32
      frag.yield %r : f32
    }
    %shift = frag.map %m2 : !rows -> !rows {
    ^bb0(%x: f32):
      %r = arith.mulf %x, %negative : f32
      frag.yield %r : f32
    }
    %shifts = frag.broadcast %shift along 1 : !rows -> !scores
    %p = frag.map %masked, %shifts : !scores, !scores -> !scores {
    ^bb0(%x: f32, %y: f32):
      %d = math.fma %x, %scale, %y : f32
      %r = math.exp2 %d fastmath<afn> : f32
      frag.yield %r : f32
    }
    %factor = frag.map %m1, %m2 : !rows, !rows -> !rows {
    ^bb0(%x: f32, %y: f32):
      %d = arith.subf %x, %y : f32
      %e = arith.mulf %d, %scale : f32
      %r = math.exp2 %e fastmath<afn> : f32
      frag.yield %r : f32
    }
    %total = frag.reduce add dim 1 %p : !scores -> !rows
    %l2 = frag.map %l1, %factor, %total : !rows, !rows, !rows -> !rows {
    ^bb0(%x: f32, %f: f32, %more: f32):
      %r = math.fma %x, %f, %more : f32
      frag.yield %r : f32
    }
    %ft = frag.broadcast %factor along 1 : !rows -> !sums
    %scaled = frag.map %a1, %ft : !sums, !sums -> !sums {
    ^bb0(%x: f32, %f: f32):
      %r = arith.mulf %x, %f : f32
      frag.yield %r : f32
    }
    %P = frag.cast %p : !scores -> !weights
    %V = frag.load %vs[0, 0] : !block -> !value
    %a2 = frag.mma %P, %V, %scaled : !weights, !value, !sums -> !sums
    scf.yield %m2, %l2, %a2 : !rows, !rows, !sums
  }
  %L1 = frag.map %L, %seen : !rows, !counts -> !rows {
  ^bb0(%x: f32, %u: i32):
    %any = arith.cmpi sgt, %u, %none : i32
    %unit = arith.constant 1.0 : f32
    %r = arith.select %any, %x, %unit : f32
    frag.yield %r : f32
  }
  %lt = frag.broadcast %L1 along 1 : !rows -> !sums
  %wide = frag.map %A, %lt : !sums, !sums -> !sums {
  ^bb0(%x: f32, %y: f32):
    %r = arith.divf %x, %y : f32
    frag.yield %r : f32
  }
  %out = frag.cast %wide : !sums -> !out
  frag.store %out, %o[%head, %row, 0] masked : !out, !memory
  %logs = frag.map %M, %L1, %seen : !rows, !rows, !counts -> !rows {
  ^bb0(%x: f32, %y: f32, %u: i32):
    %low = arith.constant 0xFF800000 : f32
    %root = arith.constant 0.125 : f32
    %any = arith.cmpi sgt, %u, %none : i32
    %w = math.log %y : f32
    %z = math.fma %x, %root, %w : f32
    %r = arith.select %any, %z, %low : f32
    frag.yield %r : f32
  }
  frag.store %logs, %lse[%head, %row] masked : !rows, memref<?x?xf32>
  func.return
}
