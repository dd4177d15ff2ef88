// One warp, one instruction: m8n8k4 of f16, the first tensor-core instruction (Volta).
//
// It forms four independent products D = A B + C at once, one for each group of eight lanes, so
// every matrix has a third index: which product. A and B may each be stored by row or by column;
// `using` says so, since it decides which lane holds what. C and D are f16 or f32, also mixed; the
// f32 accumulator has a layout of its own. A function a variant: @row_col_f16_f32 has A by row, B by
// column, C in f16 and D in f32.
//
//   fragir run examples/mma_m8n8k4_f16.mlir --entry row_col_f32_f32
//   fragir layout mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 c

!a = !frag.tile<8x4x4xf16>
!b = !frag.tile<4x8x4xf16>
!f16 = !frag.tile<8x8x4xf16>
!f32 = !frag.tile<8x8x4xf32>

func.func @row_row_f16_f16(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf16>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.row.row" : !a, !b, !f16 -> !f16
  frag.store %3, %d[0, 0, 0] : !f16, memref<8x8x4xf16>
  func.return
}

func.func @row_row_f32_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf32>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf32> -> !f32
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.row.row" : !a, !b, !f32 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @row_row_f16_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.row.row" : !a, !b, !f16 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @row_col_f16_f16(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf16>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.row.col" : !a, !b, !f16 -> !f16
  frag.store %3, %d[0, 0, 0] : !f16, memref<8x8x4xf16>
  func.return
}

func.func @row_col_f32_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf32>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf32> -> !f32
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.row.col" : !a, !b, !f32 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @row_col_f16_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.row.col" : !a, !b, !f16 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @col_row_f16_f16(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf16>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.row" : !a, !b, !f16 -> !f16
  frag.store %3, %d[0, 0, 0] : !f16, memref<8x8x4xf16>
  func.return
}

func.func @col_row_f32_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf32>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf32> -> !f32
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.row" : !a, !b, !f32 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @col_row_f16_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.row" : !a, !b, !f16 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @col_col_f16_f16(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf16>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.col" : !a, !b, !f16 -> !f16
  frag.store %3, %d[0, 0, 0] : !f16, memref<8x8x4xf16>
  func.return
}

func.func @col_col_f32_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf32>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf32> -> !f32
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.col" : !a, !b, !f32 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}

func.func @col_col_f16_f32(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>, %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !a
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !b
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !f16
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.col" : !a, !b, !f16 -> !f32
  frag.store %3, %d[0, 0, 0] : !f32, memref<8x8x4xf32>
  func.return
}
