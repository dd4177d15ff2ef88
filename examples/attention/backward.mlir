// The gradient of flash attention, heads of 64 columns: from dO and what forward.mlir gives, O and
// the logarithms of the rows' sums, in three kernels. @delta: the products of the rows of O and dO.
// @dkdv: a block of keys goes over the queries of all heads that share them. It computes S
// transposed, K Q^T, so P and dS stand as the A operands of dV = P^T dO and dK = dS^T Q where they
// are. @dq: a block of queries computes S once more, for dQ = dS K. Nothing of m x n is stored:
// P = e^(S - lse), dS = P (dO V^T - delta) / 8.
//
//   fragir run examples/attention/backward.mlir --entry dkdv --size h=4,g=2,m=100,n=150
//   fragir run examples/attention/backward.mlir --entry dq --size h=4,g=2,m=100,n=150 --arg causal=0

!memory = memref<?x?x64xf16>
!vector = memref<?x?xf32>
!block = memref<32x64xf16, #frag.shared<swizzle = 128>>
!half = !frag.tile<64x64xf16>
!sums = !frag.tile<64x64xf32>
!turned = !frag.tile<64x32xf16>
!straight = !frag.tile<32x64xf16>
!scores = !frag.tile<64x32xf32>
!weights = !frag.tile<64x32xf16>
!places = !frag.tile<64x32xi32>
!rows = !frag.tile<64xf32>
!cols = !frag.tile<32xf32>
!counts = !frag.tile<64xi32>

func.func @delta(%o: !memory {frag.sizes = ["h", "m"]}, %do: !memory {frag.sizes = ["h", "m"]},
                 %delta: !vector {frag.sizes = ["h", "m"]})
    attributes {frag.grid = #frag.grid<m by 64, h>, frag.warps = array<i64: 4, 1>} {
  %c64 = arith.constant 64 : index
  %block = frag.block_id x
  %head = frag.block_id y
  %row = arith.muli %block, %c64 : index
  %x = frag.load %o[%head, %row, 0] masked : !memory -> !half
  %y = frag.load %do[%head, %row, 0] masked : !memory -> !half
  %xw = frag.cast %x : !half -> !sums
  %yw = frag.cast %y : !half -> !sums
  %xy = frag.map %xw, %yw : !sums, !sums -> !sums {
  ^bb0(%u: f32, %v: f32):
    %r = arith.mulf %u, %v : f32
    frag.yield %r : f32
  }
  %sum = frag.reduce add dim 1 %xy : !sums -> !rows
  frag.store %sum, %delta[%head, %row] masked : !rows, !vector
  func.return
}

func.func @dkdv(%q: !memory {frag.sizes = ["h", "m"]}, %k: !memory {frag.sizes = ["g", "n"]},
                %v: !memory {frag.sizes = ["g", "n"]}, %do: !memory {frag.sizes = ["h", "m"]},
                %lse: !vector {frag.sizes = ["h", "m"]}, %delta: !vector {frag.sizes = ["h", "m"]},
                %dk: !memory {frag.sizes = ["g", "n"]}, %dv: !memory {frag.sizes = ["g", "n"]},
                %causal: i32)
    attributes {frag.grid = #frag.grid<n by 64, g>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %block = frag.block_id x
  %group = frag.block_id y
  %col = arith.muli %block, %c64 : index
  %heads = memref.dim %q, %c0 : !memory
  %groups = memref.dim %k, %c0 : !memory
  %each = arith.divui %heads, %groups : index
  %head0 = arith.muli %group, %each : index
  %head1 = arith.addi %head0, %each : index
  %m = memref.dim %q, %c1 : !memory
  %n = memref.dim %k, %c1 : !memory
  %mi = arith.index_cast %m : index to i32
  %ni = arith.index_cast %n : index to i32
  %coli = arith.index_cast %col : index to i32
  // key j of the block is seen by the queries from %since + j on
  %is_causal = arith.cmpi ne, %causal, %none : i32
  %later = arith.select %is_causal, %mi, %none : i32
  %before = arith.subi %coli, %ni : i32
  %since = arith.addi %before, %later : i32
  %some = arith.maxsi %since, %none : i32
  %start = arith.index_cast %some : i32 to index
  %j = frag.iota dim 0 : !counts
  %K = frag.load %k[%group, %col, 0] masked : !memory -> !half
  %V = frag.load %v[%group, %col, 0] masked : !memory -> !half
  %qs = memref.alloc() : !block
  %dos = memref.alloc() : !block
  %s0 = frag.fill %zero : !scores
  %a0 = frag.fill %zero : !sums
  %dK, %dV = scf.for %head = %head0 to %head1 step %c1 iter_args(%k0 = %a0, %v0 = %a0) -> (!sums, !sums) {
    %ks, %vs = scf.for %t = %start to %m step %c32 iter_args(%k1 = %k0, %v1 = %v0) -> (!sums, !sums) {
      frag.barrier
      frag.copy async %q[%head, %t, 0] to %qs[] masked : !memory to !block
      frag.copy async %do[%head, %t, 0] to %dos[] masked : !memory to !block
      frag.commit
      %l = frag.load %lse[%head, %t] masked : !vector -> !cols
      %e = frag.load %delta[%head, %t] masked : !vector -> !cols
      frag.wait 0
      frag.barrier
      %Qt = frag.load %qs[0, 0] transposed : !block -> !turned
      %s = frag.mma %K, %Qt, %s0 : !half, !turned, !scores -> !scores
      %shift = frag.map %l : !cols -> !cols {
      ^bb0(%x: f32):
        %c = arith.constant -1.4426950408889634 : f32
        %r = arith.mulf %x, %c : f32
        frag.yield %r : f32
      }
      %shifts = frag.broadcast %shift along 0 : !cols -> !scores
      %at = arith.index_cast %t : index to i32
      %first = frag.map %j : !counts -> !counts {
      ^bb0(%x: i32):
        %there = arith.addi %x, %since : i32
        %r = arith.subi %there, %at : i32
        frag.yield %r : i32
      }
      %firsts = frag.broadcast %first along 1 : !counts -> !places
      %i = frag.iota dim 1 : !places
      %p = frag.map %s, %shifts, %i, %firsts : !scores, !scores, !places, !places -> !scores {
      ^bb0(%x: f32, %y: f32, %u: i32, %w: i32):
        // log2(e) / 8, as 2^x is what the machine has
        %c = arith.constant 0.18033688011112042 : f32
        %d = math.fma %x, %c, %y : f32
        %power = math.exp2 %d fastmath<afn> : f32
        %seen = arith.cmpi sge, %u, %w : i32
        %r = arith.select %seen, %power, %zero : f32
        frag.yield %r : f32
      }
      %P = frag.cast %p : !scores -> !weights
      %dO = frag.load %dos[0, 0] : !block -> !straight
      %v2 = frag.mma %P, %dO, %v1 : !weights, !straight, !sums -> !sums
      %dOt = frag.load %dos[0, 0] transposed : !block -> !turned
      %dp = frag.mma %V, %dOt, %s0 : !half, !turned, !scores -> !scores
      %es = frag.broadcast %e along 0 : !cols -> !scores
      %ds = frag.map %p, %dp, %es : !scores, !scores, !scores -> !scores {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %d = arith.subf %y, %z : f32
        %r = arith.mulf %x, %d : f32
        frag.yield %r : f32
      }
      %dS = frag.cast %ds : !scores -> !weights
      %Q = frag.load %qs[0, 0] : !block -> !straight
      %k2 = frag.mma %dS, %Q, %k1 : !weights, !straight, !sums -> !sums
      scf.yield %k2, %v2 : !sums, !sums
    }
    scf.yield %ks, %vs : !sums, !sums
  }
  %scaled = frag.map %dK : !sums -> !sums {
  ^bb0(%x: f32):
    %c = arith.constant 0.125 : f32
    %r = arith.mulf %x, %c : f32
    frag.yield %r : f32
  }
  %dKh = frag.cast %scaled : !sums -> !half
  frag.store %dKh, %dk[%group, %col, 0] masked : !half, !memory
  %dVh = frag.cast %dV : !sums -> !half
  frag.store %dVh, %dv[%group, %col, 0] masked : !half, !memory
  func.return
}

func.func @dq(%q: !memory {frag.sizes = ["h", "m"]}, %k: !memory {frag.sizes = ["g", "n"]},
              %v: !memory {frag.sizes = ["g", "n"]}, %do: !memory {frag.sizes = ["h", "m"]},
              %lse: !vector {frag.sizes = ["h", "m"]}, %delta: !vector {frag.sizes = ["h", "m"]},
              %dq: !memory {frag.sizes = ["h", "m"]}, %causal: i32)
    attributes {frag.grid = #frag.grid<m by 64, h>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %further = arith.constant 63 : i32
  %zero = arith.constant 0.0 : f32
  %block = frag.block_id x
  %head = frag.block_id y
  %row = arith.muli %block, %c64 : index
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
  %last = arith.addi %reach, %further : i32
  %most = arith.minsi %last, %ni : i32
  %some = arith.maxsi %most, %none : i32
  %end = arith.index_cast %some : i32 to index
  %i = frag.iota dim 0 : !counts
  %Q = frag.load %q[%head, %row, 0] masked : !memory -> !half
  %dO = frag.load %do[%head, %row, 0] masked : !memory -> !half
  %l = frag.load %lse[%head, %row] masked : !vector -> !rows
  %e = frag.load %delta[%head, %row] masked : !vector -> !rows
  %shift = frag.map %l : !rows -> !rows {
  ^bb0(%x: f32):
    %c = arith.constant -1.4426950408889634 : f32
    %r = arith.mulf %x, %c : f32
    frag.yield %r : f32
  }
  %shifts = frag.broadcast %shift along 1 : !rows -> !scores
  %es = frag.broadcast %e along 1 : !rows -> !scores
  %ks = memref.alloc() : !block
  %vs = memref.alloc() : !block
  %s0 = frag.fill %zero : !scores
  %a0 = frag.fill %zero : !sums
  %dQ = scf.for %t = %c0 to %end step %c32 iter_args(%a1 = %a0) -> (!sums) {
    frag.barrier
    frag.copy async %k[%group, %t, 0] to %ks[] masked : !memory to !block
    frag.copy async %v[%group, %t, 0] to %vs[] masked : !memory to !block
    frag.commit
    frag.wait 0
    frag.barrier
    %Kt = frag.load %ks[0, 0] transposed : !block -> !turned
    %s = frag.mma %Q, %Kt, %s0 : !half, !turned, !scores -> !scores
    %at = arith.index_cast %t : index to i32
    %left = frag.map %i : !counts -> !counts {
    ^bb0(%x: i32):
      %there = arith.addi %x, %reach : i32
      %inside = arith.minsi %there, %ni : i32
      %r = arith.subi %inside, %at : i32
      frag.yield %r : i32
    }
    %lefts = frag.broadcast %left along 1 : !counts -> !places
    %j = frag.iota dim 1 : !places
    %p = frag.map %s, %shifts, %j, %lefts : !scores, !scores, !places, !places -> !scores {
    ^bb0(%x: f32, %y: f32, %u: i32, %w: i32):
      %c = arith.constant 0.18033688011112042 : f32
      %d = math.fma %x, %c, %y : f32
      %power = math.exp2 %d fastmath<afn> : f32
      %seen = arith.cmpi slt, %u, %w : i32
      %r = arith.select %seen, %power, %zero : f32
      frag.yield %r : f32
    }
    %Vt = frag.load %vs[0, 0] transposed : !block -> !turned
    %dp = frag.mma %dO, %Vt, %s0 : !half, !turned, !scores -> !scores
    %ds = frag.map %p, %dp, %es : !scores, !scores, !scores -> !scores {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %d = arith.subf %y, %z : f32
      %r = arith.mulf %x, %d : f32
      frag.yield %r : f32
    }
    %dS = frag.cast %ds : !scores -> !weights
    %K = frag.load %ks[0, 0] : !block -> !straight
    %a2 = frag.mma %dS, %K, %a1 : !weights, !straight, !sums -> !sums
    scf.yield %a2 : !sums
  }
  %scaled = frag.map %dQ : !sums -> !sums {
  ^bb0(%x: f32):
    %c = arith.constant 0.125 : f32
    %r = arith.mulf %x, %c : f32
    frag.yield %r : f32
  }
  %out = frag.cast %scaled : !sums -> !half
  frag.store %out, %dq[%head, %row, 0] masked : !half, !memory
  func.return
}
