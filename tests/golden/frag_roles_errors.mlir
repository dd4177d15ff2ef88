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
