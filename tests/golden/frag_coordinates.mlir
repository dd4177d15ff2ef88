// RUN: -p frag-place
// Where elements of operands and results stand.
func.func @f(%a: memref<8x16xf16>, %o: memref<64xi32>) attributes {frag.warps = array<i64: 2, 1>} {
  %0 = frag.load %a[0, 0] : memref<8x16xf16> -> !frag.tile<8x16xf16>
  %1 = frag.lanes %0 in #frag.layout<"lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(0,8)]"> : !frag.tile<8x16xf16> -> !frag.tile<64xi32> in #frag.layout<"warp [2:(32)] lane [32:(1)] element []"> {
  ^bb0(%lane: index, %warp: index, %x: vector<4xf16>):
    %i, %j = frag.coordinates operand 0 element 3 : index, index
    %k = frag.coordinates result 0 element 0 : index
    %s = arith.addi %i, %j : index
    %t = arith.addi %s, %k : index
    %n = arith.index_cast %t : index to i32
    %v = ptx.splat %n : i32 -> vector<1xi32>
    frag.yield %v : vector<1xi32>
  }
  frag.store %1, %o[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}
