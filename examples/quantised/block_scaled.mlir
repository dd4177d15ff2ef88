// C = A W in the microscaling formats, whose scales the tensor cores apply themselves. @mxfp8: e4m3 with a
// power of two for each 32 numbers of a row. @nvfp4: e2m1, two to a byte, with an e4m3 scale for each
// 16; its rows are padded to whole 16 bytes (`packed`), with zeros. %w has a row for each column of W.
//
//   fragir run examples/quantised/block_scaled.mlir --entry mxfp8 --size m=45,n=71,k=150,blocks=5 --target sm_120a
//   fragir run examples/quantised/block_scaled.mlir --entry nvfp4 --size m=45,n=71,packed=160,blocks=10 --target sm_120a

!bytes = memref<3x64x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!nibbles = memref<3x64x128x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 64>>
!sums = !frag.tile<64x64xf32>

func.func @mxfp8(%a: memref<?x?xf8E4M3FN> {frag.sizes = ["m", "k"]},
            %w: memref<?x?xf8E4M3FN> {frag.sizes = ["n", "k"]},
            %a_scale: memref<?x?xf8E8M0FNU> {frag.sizes = ["m", "blocks"]},
            %w_scale: memref<?x?xf8E8M0FNU> {frag.sizes = ["n", "blocks"]},
            %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 64>, frag.warps = array<i64: 2, 2>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %32 = arith.constant 32 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %256 = arith.constant 256 : index
  %k = memref.dim %a, %1 : memref<?x?xf8E4M3FN>
  %by = frag.block_id y
  %row = arith.muli %by, %64 : index
  %bx = frag.block_id x
  %col = arith.muli %bx, %64 : index
  %as = memref.alloc() : !bytes
  %ws = memref.alloc() : !bytes
  frag.copy async %a[%row, 0] to %as[0] masked : memref<?x?xf8E4M3FN> to !bytes
  frag.copy async %w[%col, 0] to %ws[0] masked : memref<?x?xf8E4M3FN> to !bytes
  frag.commit
  frag.copy async %a[%row, 128] to %as[1] masked : memref<?x?xf8E4M3FN> to !bytes
  frag.copy async %w[%col, 128] to %ws[1] masked : memref<?x?xf8E4M3FN> to !bytes
  frag.commit
  %nothing = arith.constant 0.0 : f32
  %zero = frag.fill %nothing : !sums
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %zero, %stage = %0) -> (!sums, index) {
    frag.wait 1
    frag.barrier
    %ahead = arith.addi %i, %256 : index
    %more = arith.cmpi slt, %ahead, %k : index
    scf.if %more {
      %first = arith.cmpi eq, %stage, %0 : index
      %before = arith.subi %stage, %1 : index
      %slot = arith.select %first, %2, %before : index
      frag.copy async %a[%row, %ahead] to %as[%slot] masked : memref<?x?xf8E4M3FN> to !bytes
      frag.copy async %w[%col, %ahead] to %ws[%slot] masked : memref<?x?xf8E4M3FN> to !bytes
    }
    frag.commit
    %x = frag.load %as[%stage, 0, 0] : !bytes -> !frag.tile<64x128xf8E4M3FN>
    %y = frag.load %ws[%stage, 0, 0] transposed : !bytes -> !frag.tile<128x64xf8E4M3FN>
    %at = arith.divui %i, %32 : index
    %rows = frag.load %a_scale[%row, %at] masked : memref<?x?xf8E8M0FNU> -> !frag.tile<64x4xf8E8M0FNU>
    %columns = frag.load %w_scale[%col, %at] transposed masked : memref<?x?xf8E8M0FNU> -> !frag.tile<4x64xf8E8M0FNU>
    %next = frag.mma %x, %y, %acc scaled %rows, %columns
        : !frag.tile<64x128xf8E4M3FN>, !frag.tile<128x64xf8E4M3FN>, !sums,
          !frag.tile<64x4xf8E8M0FNU>, !frag.tile<4x64xf8E8M0FNU>
        -> !sums
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  frag.store %total, %c[%row, %col] masked : !sums, memref<?x?xf32>
  func.return
}

func.func @nvfp4(%a: memref<?x?x!frag.packed<f4E2M1FN>> {frag.sizes = ["m", "packed"]},
            %w: memref<?x?x!frag.packed<f4E2M1FN>> {frag.sizes = ["n", "packed"]},
            %a_scale: memref<?x?xf8E4M3FN> {frag.sizes = ["m", "blocks"]},
            %w_scale: memref<?x?xf8E4M3FN> {frag.sizes = ["n", "blocks"]},
            %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 64>, frag.warps = array<i64: 2, 2>,
                frag.divisible = {packed = 32}} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %16 = arith.constant 16 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %256 = arith.constant 256 : index
  %k = memref.dim %a, %1 : memref<?x?x!frag.packed<f4E2M1FN>>
  %by = frag.block_id y
  %row = arith.muli %by, %64 : index
  %bx = frag.block_id x
  %col = arith.muli %bx, %64 : index
  %as = memref.alloc() : !nibbles
  %ws = memref.alloc() : !nibbles
  frag.copy async %a[%row, 0] to %as[0] masked : memref<?x?x!frag.packed<f4E2M1FN>> to !nibbles
  frag.copy async %w[%col, 0] to %ws[0] masked : memref<?x?x!frag.packed<f4E2M1FN>> to !nibbles
  frag.commit
  frag.copy async %a[%row, 128] to %as[1] masked : memref<?x?x!frag.packed<f4E2M1FN>> to !nibbles
  frag.copy async %w[%col, 128] to %ws[1] masked : memref<?x?x!frag.packed<f4E2M1FN>> to !nibbles
  frag.commit
  %nothing = arith.constant 0.0 : f32
  %zero = frag.fill %nothing : !sums
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %zero, %stage = %0) -> (!sums, index) {
    frag.wait 1
    frag.barrier
    %ahead = arith.addi %i, %256 : index
    %more = arith.cmpi slt, %ahead, %k : index
    scf.if %more {
      %first = arith.cmpi eq, %stage, %0 : index
      %before = arith.subi %stage, %1 : index
      %slot = arith.select %first, %2, %before : index
      frag.copy async %a[%row, %ahead] to %as[%slot] masked : memref<?x?x!frag.packed<f4E2M1FN>> to !nibbles
      frag.copy async %w[%col, %ahead] to %ws[%slot] masked : memref<?x?x!frag.packed<f4E2M1FN>> to !nibbles
    }
    frag.commit
    %x = frag.load %as[%stage, 0, 0] : !nibbles -> !frag.tile<64x128x!frag.packed<f4E2M1FN>>
    %y = frag.load %ws[%stage, 0, 0] transposed : !nibbles -> !frag.tile<128x64x!frag.packed<f4E2M1FN>>
    %at = arith.divui %i, %16 : index
    %rows = frag.load %a_scale[%row, %at] masked : memref<?x?xf8E4M3FN> -> !frag.tile<64x8xf8E4M3FN>
    %columns = frag.load %w_scale[%col, %at] transposed masked : memref<?x?xf8E4M3FN> -> !frag.tile<8x64xf8E4M3FN>
    %next = frag.mma %x, %y, %acc scaled %rows, %columns
        : !frag.tile<64x128x!frag.packed<f4E2M1FN>>, !frag.tile<128x64x!frag.packed<f4E2M1FN>>, !sums,
          !frag.tile<64x8xf8E4M3FN>, !frag.tile<8x64xf8E4M3FN>
        -> !sums
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  frag.store %total, %c[%row, %col] masked : !sums, memref<?x?xf32>
  func.return
}
