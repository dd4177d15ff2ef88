// Flash attention, causal: O = softmax(Q K^T / 8) V for each head, of any number of queries (m) and of
// keys (n, at least m), 64 columns a head. Query i sees the keys up to i + n - m. Four warps take 64
// queries; keys and values come by 32 through shared memory. The largest and the sum of every row are
// kept while the keys go by; the sums of the first product become the operand of the second by
// another name.
//
//   fragir run examples/attention/forward.mlir --size h=2,m=100,n=150
//   fragir compile examples/attention/forward.mlir --explain-layouts

!memory = memref<?x?x64xf16>
!block = memref<32x64xf16, #frag.shared<swizzle = 128>>
!query = !frag.tile<64x64xf16>
!key = !frag.tile<64x32xf16>
!value = !frag.tile<32x64xf16>
!scores = !frag.tile<64x32xf32>
!places = !frag.tile<64x32xi32>
!sums = !frag.tile<64x64xf32>
!rows = !frag.tile<64xf32>

func.func @attention(%q: !memory {frag.sizes = ["h", "m"]}, %k: !memory {frag.sizes = ["h", "n"]},
                     %v: !memory {frag.sizes = ["h", "n"]},
                     %o: memref<?x?x64xf32> {frag.sizes = ["h", "m"]})
    attributes {frag.grid = #frag.grid<m by 64, h>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %32 = arith.constant 32 : index
  %64 = arith.constant 64 : index
  %block = frag.block_id x
  %head = frag.block_id y
  %row = arith.muli %block, %64 : index
  %m = memref.dim %q, %1 : !memory
  %n = memref.dim %k, %1 : !memory
  %mi = arith.index_cast %m : index to i32
  %ni = arith.index_cast %n : index to i32
  %rowi = arith.index_cast %row : index to i32
  %later = arith.subi %ni, %mi : i32
  // query i of the block sees so many keys more than i
  %seen = arith.addi %rowi, %later : i32
  %last = arith.constant 64 : i32
  %all = arith.addi %seen, %last : i32
  %none = arith.constant 0 : i32
  %some = arith.maxsi %all, %none : i32
  %fewest = arith.minsi %some, %ni : i32
  %end = arith.index_cast %fewest : i32 to index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -1.0e30 : f32
  %ks = memref.alloc() : !block
  %vs = memref.alloc() : !block
  %Q = frag.load %q[%head, %row, 0] masked : !memory -> !query
  %m0 = frag.fill %least : !rows
  %l0 = frag.fill %zero : !rows
  %a0 = frag.fill %zero : !sums
  %i = frag.iota dim 0 : !places
  %j = frag.iota dim 1 : !places
  %M, %L, %A = scf.for %t = %0 to %end step %32
      iter_args(%m1 = %m0, %l1 = %l0, %a1 = %a0) -> (!rows, !rows, !sums) {
    frag.barrier
    frag.copy async %k[%head, %t, 0] to %ks[] masked : !memory to !block
    frag.copy async %v[%head, %t, 0] to %vs[] masked : !memory to !block
    frag.commit
    frag.wait 0
    frag.barrier
    %K = frag.load %ks[0, 0] transposed : !block -> !key
    %z = frag.fill %zero : !scores
    %s = frag.mma %Q, %K, %z : !query, !key, !scores -> !scores
    %at = arith.index_cast %t : index to i32
    %left = arith.subi %ni, %at : i32
    %ahead = arith.subi %seen, %at : i32
    %masked = frag.map %s, %i, %j : !scores, !places, !places -> !scores {
    ^bb0(%x: f32, %u: i32, %w: i32):
      // 1/8 and log2(e), as 2^x is what the machine has (afn: as it has it)
      %c = arith.constant 0.18033688011112042 : f32
      %low = arith.constant -1.0e30 : f32
      %y = arith.mulf %x, %c : f32
      %inside = arith.cmpi slt, %w, %left : i32
      %reach = arith.addi %u, %ahead : i32
      %before = arith.cmpi sle, %w, %reach : i32
      %both = arith.andi %inside, %before : i1
      %r = arith.select %both, %y, %low : f32
      frag.yield %r : f32
    }
    %largest = frag.reduce max dim 1 %masked : !scores -> !rows
    %m2 = frag.map %m1, %largest : !rows, !rows -> !rows {
    ^bb0(%x: f32, %y: f32):
      %r = arith.maximumf %x, %y : f32
      frag.yield %r : f32
    }
    %mt = frag.broadcast %m2 along 1 : !rows -> !scores
    %p = frag.map %masked, %mt : !scores, !scores -> !scores {
    ^bb0(%x: f32, %y: f32):
      %d = arith.subf %x, %y : f32
      %r = math.exp2 %d fastmath<afn> : f32
      frag.yield %r : f32
    }
    %factor = frag.map %m1, %m2 : !rows, !rows -> !rows {
    ^bb0(%x: f32, %y: f32):
      %d = arith.subf %x, %y : f32
      %r = math.exp2 %d fastmath<afn> : f32
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
    %P = frag.cast %p : !scores -> !frag.tile<64x32xf16>
    %V = frag.load %vs[0, 0] : !block -> !value
    %a2 = frag.mma %P, %V, %scaled : !frag.tile<64x32xf16>, !value, !sums -> !sums
    scf.yield %m2, %l2, %a2 : !rows, !rows, !sums
  }
  %lt = frag.broadcast %L along 1 : !rows -> !sums
  %out = frag.map %A, %lt : !sums, !sums -> !sums {
  ^bb0(%x: f32, %y: f32):
    %r = arith.divf %x, %y : f32
    frag.yield %r : f32
  }
  frag.store %out, %o[%head, %row, 0] masked : !sums, memref<?x?x64xf32>
  func.return
}
