// C = A B in bytes: each group of 8 columns of a row is scaled by its largest magnitude. A group lies
// in the four lanes of a quad, as mma leaves it, so two shuffles find that, and nothing else moves.
//
//   fragir run examples/lanes/quantised.mlir --size m=70,n=40,k=33,groups=5

!sums = !frag.tile<64x16xf32>

func.func @quantised(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                     %b: memref<?x?xf16> {frag.sizes = ["k", "n"]},
                     %c: memref<?x?xsi8> {frag.sizes = ["m", "n"]},
                     %scales: memref<?x?xf32> {frag.sizes = ["m", "groups"]})
    attributes {frag.grid = #frag.grid<n by 16, m by 64>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %row = arith.muli %by, %c64 : index
  %col = arith.muli %bx, %c16 : index
  %group = arith.muli %bx, %c2 : index
  %depth = memref.dim %a, %c1 : memref<?x?xf16>
  %zero = arith.constant 0.0 : f32
  %start = frag.fill %zero : !sums
  %sum = scf.for %i = %c0 to %depth step %c16 iter_args(%acc = %start) -> (!sums) {
    %x = frag.load %a[%row, %i] masked : memref<?x?xf16> -> !frag.tile<64x16xf16>
    %y = frag.load %b[%i, %col] masked : memref<?x?xf16> -> !frag.tile<16x16xf16>
    %more = frag.mma %x, %y, %acc : !frag.tile<64x16xf16>, !frag.tile<16x16xf16>, !sums -> !sums
    scf.yield %more : !sums
  }
  %q, %s = frag.lanes %sum in #frag.mma<m16n8k16.f16, c, warps = [4, 1]> : !sums
      -> !sums like %sum,
         !frag.tile<64x2xf32> in #frag.layout<"warp [4:(16,0)] lane [4:(0,0) 8:(1,0)] element [2:(8,0) 2:(0,1)]"> {
  ^bb0(%lane: index, %warp: index, %x: vector<8xf32>):
    // pairs of neighbours, then the quad: of two rows and two groups
    %magnitude = math.absf %x : vector<8xf32>
    %m:8 = ptx.unpack %magnitude : vector<8xf32> -> f32, f32, f32, f32, f32, f32, f32, f32
    %m0 = arith.maxnumf %m#0, %m#1 : f32
    %m1 = arith.maxnumf %m#2, %m#3 : f32
    %m2 = arith.maxnumf %m#4, %m#5 : f32
    %m3 = arith.maxnumf %m#6, %m#7 : f32
    %own = ptx.pack %m0, %m1, %m2, %m3 : f32, f32, f32, f32 -> vector<4xf32>
    %next = ptx.shuffle_xor %own xor 1 : vector<4xf32> -> vector<4xf32>
    %two = arith.maxnumf %own, %next : vector<4xf32>
    %others = ptx.shuffle_xor %two xor 2 : vector<4xf32> -> vector<4xf32>
    %largest = arith.maxnumf %two, %others : vector<4xf32>
    %most = arith.constant dense<127.0> : vector<4xf32>
    %scale = arith.divf %largest, %most : vector<4xf32>
    // groups of zeros stay so
    %none = ptx.zero : vector<4xf32>
    %some = ptx.compare "ogt" %largest, %none : vector<4xf32> -> vector<4xi1>
    %quotient = arith.divf %most, %largest : vector<4xf32>
    %factor = ptx.select %some, %quotient, %none : vector<4xi1>, vector<4xf32>
    %f:4 = ptx.unpack %factor : vector<4xf32> -> f32, f32, f32, f32
    %factors = ptx.pack %f#0, %f#0, %f#1, %f#1, %f#2, %f#2, %f#3, %f#3
        : f32, f32, f32, f32, f32, f32, f32, f32 -> vector<8xf32>
    %scaled = arith.mulf %x, %factors : vector<8xf32>
    %whole = math.roundeven %scaled : vector<8xf32>
    frag.yield %whole, %scale : vector<8xf32>, vector<4xf32>
  }
  %bytes = frag.cast %q : !sums -> !frag.tile<64x16xsi8>
  frag.store %bytes, %c[%row, %col] masked : !frag.tile<64x16xsi8>, memref<?x?xsi8>
  frag.store %s, %scales[%row, %group] masked : !frag.tile<64x2xf32>, memref<?x?xf32>
  func.return
}
