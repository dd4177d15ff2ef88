// RUN: 
// A role may do more in its turn than take and pass it.
func.func @passed() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  frag.roles "even" warps [1, 1] {
    scf.for %i = %c0 to %c4 step %c1 {
      frag.take_turn "memory"
      frag.barrier
      frag.pass_turn "memory"
    }
  }, "odd" warps [2, 1] {
    scf.for %i = %c0 to %c4 step %c1 {
      frag.take_turn "memory"
      frag.pass_turn "memory"
    }
  }, "free" warps [1, 1] {
  }
  func.return
}
