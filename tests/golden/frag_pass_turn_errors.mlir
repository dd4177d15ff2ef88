// RUN: 
// -----
// What is passed on has been taken.
func.func @f() {
  frag.roles "a" warps [1, 1] {
    frag.pass_turn "x"
  }, "b" warps [1, 1] {
    frag.take_turn "x"
    frag.pass_turn "x"
  }
  func.return
}
// -----
// Once.
func.func @f() {
  frag.roles "a" warps [1, 1] {
    frag.take_turn "x"
    frag.pass_turn "x"
    frag.pass_turn "x"
  }, "b" warps [1, 1] {
    frag.take_turn "x"
    frag.pass_turn "x"
  }
  func.return
}
