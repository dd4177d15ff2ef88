// y[i] = table[ids[i]] for m numbers of rows, of any length k; a row that the table of n does not have
// is zero. The gradient of the table is the same way back: rows that were read are added to.
//
//   fragir run examples/data/embedding.mlir --entry forward --size m=70,n=100,k=300

!ids = !frag.tile<8xi32>
!rows = !frag.tile<8x64xf32>

func.func @forward(%table: memref<?x?xf32> {frag.sizes = ["n", "k"]},
                   %ids: memref<?xi32> {frag.sizes = ["m"]},
                   %y: memref<?x?xf32> {frag.sizes = ["m", "k"]})
    attributes {frag.grid = #frag.grid<m by 8>, frag.warps = array<i64: 2, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  %64 = arith.constant 64 : index
  %none = arith.constant -1 : i32
  %k = memref.dim %table, %1 : memref<?x?xf32>
  %b = frag.block_id x
  %row = arith.muli %b, %8 : index
  %i = frag.load %ids[%row] masked other %none : memref<?xi32> -> !ids
  scf.for %j = %0 to %k step %64 {
    %t = frag.gather %table[%i, %j] masked : memref<?x?xf32>, !ids, index -> !rows
    frag.store %t, %y[%row, %j] masked : !rows, memref<?x?xf32>
  }
  func.return
}

func.func @backward(%dy: memref<?x?xf32> {frag.sizes = ["m", "k"]},
                    %ids: memref<?xi32> {frag.sizes = ["m"]},
                    %dtable: memref<?x?xf32> {frag.sizes = ["n", "k"]})
    attributes {frag.grid = #frag.grid<m by 8>, frag.warps = array<i64: 2, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  %64 = arith.constant 64 : index
  %none = arith.constant -1 : i32
  %k = memref.dim %dtable, %1 : memref<?x?xf32>
  %b = frag.block_id x
  %row = arith.muli %b, %8 : index
  %i = frag.load %ids[%row] masked other %none : memref<?xi32> -> !ids
  scf.for %j = %0 to %k step %64 {
    %t = frag.load %dy[%row, %j] masked : memref<?x?xf32> -> !rows
    frag.atomic add %t, %dtable[%i, %j] masked : !rows, memref<?x?xf32>, !ids, index
  }
  func.return
}
