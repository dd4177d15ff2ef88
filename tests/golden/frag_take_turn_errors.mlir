// RUN: 
// -----
// Turns are those of roles.
func.func @f() {
  frag.take_turn "x"
  frag.pass_turn "x"
  func.return
}
// -----
// Of two roles or more.
func.func @f() {
  frag.roles "a" warps [1, 1] {
    frag.take_turn "x"
    frag.pass_turn "x"
  }, "b" warps [1, 1] {
    frag.take_turn "y"
    frag.pass_turn "y"
  }
  func.return
}
// -----
// They are passed on.
func.func @f() {
  frag.roles "a" warps [1, 1] {
    frag.take_turn "x"
  }, "b" warps [1, 1] {
    frag.take_turn "x"
    frag.pass_turn "x"
  }
  func.return
}
// -----
// On every path.
func.func @f(%p: i1) {
  frag.roles "a" warps [1, 1] {
    frag.take_turn "x"
    scf.if %p {
      frag.pass_turn "x"
    }
  }, "b" warps [1, 1] {
    frag.take_turn "x"
    frag.pass_turn "x"
  }
  func.return
}
