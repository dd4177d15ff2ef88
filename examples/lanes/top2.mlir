// The two largest of each row, and where they stand: a row a warp. Numbers become integers of the same
// order, of which redux.sync finds the largest of 32 lanes in one instruction.
//
//   fragir run examples/lanes/top2.mlir --size m=21,n=75

!part = !frag.tile<4x32xf32>
!keys = !frag.tile<4x2xi32>

func.func @top2(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                %values: memref<?x2xf32> {frag.sizes = ["m"]},
                %places: memref<?x2xi32> {frag.sizes = ["m"]})
    attributes {frag.grid = #frag.grid<m by 4>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %b = frag.block_id x
  %row = arith.muli %b, %c4 : index
  %least = arith.constant -2147483648 : i32
  %far = arith.constant 2147483647 : i32
  %none = frag.fill %least : !keys
  %nowhere = frag.fill %far : !keys
  %keys, %at = scf.for %i = %c0 to %n step %c32 iter_args(%k0 = %none, %a0 = %nowhere) -> (!keys, !keys) {
    %t = frag.load %x[%row, %i] masked : memref<?x?xf32> -> !part
    // lane l holds one number of the row; of the best so far all lanes hold one of the two
    %k1, %a1 = frag.lanes %t in #frag.layout<"warp [4:(1,0)] lane [32:(0,1)] element []">,
        %k0 in #frag.layout<"warp [4:(1,0)] lane [2:(0,1) 16:(0,0)] element []">,
        %a0 in #frag.layout<"warp [4:(1,0)] lane [2:(0,1) 16:(0,0)] element []">
        : !part, !keys, !keys -> !keys like %k0, !keys like %k0 {
    ^bb0(%lane: index, %warp: index, %v: vector<1xf32>, %old: vector<1xi32>, %olds: vector<1xi32>):
      %c2 = arith.constant 2 : index
      %c31 = arith.constant 31 : i32
      %positive = arith.constant 2147483647 : i32
      // the bits of a float in the order of its value: those of a negative one are turned
      %word = ptx.bitcast %v : vector<1xf32> -> i32
      %sign = arith.shrsi %word, %c31 : i32
      %turned = arith.andi %sign, %positive : i32
      %ordered = arith.xori %word, %turned : i32
      %column = arith.addi %i, %lane : index
      %inside = arith.cmpi ult, %column, %n : index
      %new = arith.select %inside, %ordered, %least : i32
      %place = arith.index_cast %column : index to i32
      %where = arith.select %inside, %place, %far : i32
      %o = ptx.unpack %old : vector<1xi32> -> i32
      %w = ptx.unpack %olds : vector<1xi32> -> i32
      // the largest, the first of several; then without it again
      %larger = arith.maxsi %new, %o : i32
      %k = ptx.op "redux.sync.max.s32 $0, $1, -1" (%larger) : (i32) -> i32
      %isnew = arith.cmpi eq, %new, %k : i32
      %isold = arith.cmpi eq, %o, %k : i32
      %nearnew = arith.select %isnew, %where, %far : i32
      %nearold = arith.select %isold, %w, %far : i32
      %near = arith.minsi %nearnew, %nearold : i32
      %p = ptx.op "redux.sync.min.s32 $0, $1, -1" (%near) : (i32) -> i32
      %takennew = arith.cmpi eq, %where, %p : i32
      %takenold = arith.cmpi eq, %w, %p : i32
      %rest = arith.select %takennew, %least, %new : i32
      %restold = arith.select %takenold, %least, %o : i32
      %larger2 = arith.maxsi %rest, %restold : i32
      %k2 = ptx.op "redux.sync.max.s32 $0, $1, -1" (%larger2) : (i32) -> i32
      %isnew2 = arith.cmpi eq, %rest, %k2 : i32
      %isold2 = arith.cmpi eq, %restold, %k2 : i32
      %free = arith.select %takennew, %far, %where : i32
      %freeold = arith.select %takenold, %far, %w : i32
      %nearnew2 = arith.select %isnew2, %free, %far : i32
      %nearold2 = arith.select %isold2, %freeold, %far : i32
      %near2 = arith.minsi %nearnew2, %nearold2 : i32
      %p2 = ptx.op "redux.sync.min.s32 $0, $1, -1" (%near2) : (i32) -> i32
      %which = arith.remui %lane, %c2 : index
      %first = arith.cmpi eq, %which, %c0 : index
      %key = arith.select %first, %k, %k2 : i32
      %spot = arith.select %first, %p, %p2 : i32
      %keyv = ptx.pack %key : i32 -> vector<1xi32>
      %spotv = ptx.pack %spot : i32 -> vector<1xi32>
      frag.yield %keyv, %spotv : vector<1xi32>, vector<1xi32>
    }
    scf.yield %k1, %a1 : !keys, !keys
  }
  %best = frag.map %keys : !keys -> !frag.tile<4x2xf32> {
  ^bb0(%k: i32):
    %c31 = arith.constant 31 : i32
    %positive = arith.constant 2147483647 : i32
    %sign = arith.shrsi %k, %c31 : i32
    %turned = arith.andi %sign, %positive : i32
    %word = arith.xori %k, %turned : i32
    %v = arith.bitcast %word : i32 to f32
    frag.yield %v : f32
  }
  frag.store %best, %values[%row, 0] masked : !frag.tile<4x2xf32>, memref<?x2xf32>
  frag.store %at, %places[%row, 0] masked : !keys, memref<?x2xi32>
  func.return
}
