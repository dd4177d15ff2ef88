// RUN: 
// -----
// Names are distinct.
func.func @f() {
  frag.roles "a" warps [1, 1] {
  }, "a" warps [1, 1] {
  }
  func.return
}
// -----
// Warps are two numbers.
func.func @f() {
  frag.roles "a" warps [1] {
  }
  func.return
}
// -----
// A role has warps.
func.func @f() {
  frag.roles "a" warps [1, 0] {
  }
  func.return
}
// -----
// setmaxnreg takes multiples of 8.
func.func @f() {
  frag.roles "a" warps [1, 1] registers 30 {
  }
  func.return
}
// -----
// A multiprocessor has 65536 registers.
func.func @f() {
  frag.roles "a" warpgroups [1, 1] registers 128 {
  }, "b" warpgroups [2, 1] registers 240 {
  }
  func.return
}
// -----
// Tiles do not cross.
func.func @f(%x: f32) {
  %t = frag.fill %x : !frag.tile<16x8xf32>
  frag.roles "a" warps [1, 1] {
    %u = frag.cast %t : !frag.tile<16x8xf32> -> !frag.tile<16x8xf16>
  }
  func.return
}
// -----
// At the top level.
func.func @f(%q: i1) {
  scf.if %q {
    frag.roles "a" warps [1, 1] {
    }
  }
  func.return
}
// -----
// Once.
func.func @f() {
  frag.roles "a" warps [1, 1] {
  }
  frag.roles "b" warps [1, 1] {
  }
  func.return
}
// -----
// Not more threads than a block has.
func.func @f() {
  frag.roles "a" warpgroups [4, 2] {
  }, "b" warps [1, 1] {
  }
  func.return
}
// -----
// 640 threads have 96 registers each.
func.func @f() {
  frag.roles "a" warps [4, 1] {
  }, "b" warpgroups [4, 1] registers 120 {
  }
  func.return
}
// -----
// Tiles in flight do not cross.
func.func @f() {
  %t = frag.undefined : !frag.in_flight<!frag.tile<64x64xf32>>
  frag.roles "a" warpgroups [1, 1] {
    %u = frag.await %t : !frag.in_flight<!frag.tile<64x64xf32>>
  }
  func.return
}
// -----
// Slots do not cross.
!ring = !frag.ring<memref<8x64xf16, #frag.shared>>
!slot = !frag.slot<memref<8x64xf16, #frag.shared>>
func.func @f() {
  %ring = frag.ring 2 : !ring
  %s = frag.acquire %ring : !ring
  frag.publish %s : !slot
  frag.roles "a" warps [1, 1] {
    %m = frag.part %s[0] : !slot
  }
  func.return
}
// -----
// A ring belongs to the roles, or to all threads.
!ring = !frag.ring<memref<8x64xf16, #frag.shared>>
!slot = !frag.slot<memref<8x64xf16, #frag.shared>>
func.func @f() {
  %ring = frag.ring 2 : !ring
  frag.roles "a" warps [1, 1] {
    %s = frag.acquire %ring : !ring
    frag.publish %s : !slot
  }
  %t = frag.await %ring : !ring
  frag.release %t : !slot
  func.return
}
