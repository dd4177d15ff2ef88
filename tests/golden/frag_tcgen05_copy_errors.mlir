// RUN: -p frag-place
!x = memref<1x2x2x256xf8E8M0FNU, #frag.shared>
!sfa = memref<128x8xf8E8M0FNU, #frag.tensor<scales>>
// -----
// To memory of sums.
func.func @f(%x: !x, %s: memref<128x8xf8E8M0FNU, #frag.tensor>) {
  frag.tcgen05_copy %x to %s : !x to memref<128x8xf8E8M0FNU, #frag.tensor>
  func.return
}
// -----
// From global memory.
func.func @f(%x: memref<1x2x2x256xf8E8M0FNU>, %s: !sfa) {
  frag.tcgen05_copy %x to %s : memref<1x2x2x256xf8E8M0FNU> to !sfa
  func.return
}
// -----
// Of another type.
func.func @f(%x: memref<1x2x2x256xf8E4M3FN, #frag.shared>, %s: !sfa) {
  frag.tcgen05_copy %x to %s : memref<1x2x2x256xf8E4M3FN, #frag.shared> to !sfa
  func.return
}
// -----
// Too few.
func.func @f(%x: memref<1x1x2x256xf8E8M0FNU, #frag.shared>, %s: !sfa) {
  frag.tcgen05_copy %x to %s : memref<1x1x2x256xf8E8M0FNU, #frag.shared> to !sfa
  func.return
}
// -----
// Row after row.
func.func @f(%x: memref<128x8xf8E8M0FNU, #frag.shared>, %s: !sfa) {
  frag.tcgen05_copy %x to %s : memref<128x8xf8E8M0FNU, #frag.shared> to !sfa
  func.return
}
// -----
// Swizzled.
func.func @f(%x: memref<1x2x2x256xf8E8M0FNU, #frag.shared<swizzle = 128>>, %s: !sfa) {
  frag.tcgen05_copy %x to %s : memref<1x2x2x256xf8E8M0FNU, #frag.shared<swizzle = 128>> to !sfa
  func.return
}
// -----
// A tile of scales.
func.func @f(%s: !sfa) {
  %t = frag.tcgen05_load %s : !sfa -> !frag.tile<128x8xf8E8M0FNU>
  func.return
}
