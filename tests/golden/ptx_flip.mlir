// RUN: 
// TARGET: sm_80
// Pointers with bits flipped. A mask is one lop3 with what reads it alone; not one that is read
// twice, or one of a loop's variable, which has moved on where the mask's reader stands.
func.func @k() attributes {ptx.ntid = 32 : i64} {
  %s = ptx.shared 1024 : !ptx.ptr<shared>
  %lane = ptx.special "laneid"
  %two = arith.constant 2 : index
  %six = arith.constant 6 : index
  %seven = arith.constant 7 : index
  %eight = arith.constant 8 : index
  %up = arith.shli %lane, %two : index
  %a = arith.andi %up, %eight : index
  %b = arith.andi %lane, %six : index
  %c = arith.xori %a, %b : index
  %p = ptx.flip %s, %c
  %d = arith.andi %up, %seven : index
  %q = ptx.flip %p, %d
  %e = arith.andi %lane, %seven : index
  %f = arith.ori %e, %up : index
  %g = arith.andi %lane, %two : index
  %h = arith.xori %g, %f : index
  %i = arith.xori %g, %six : index
  %t = ptx.flip %q, %h
  %u = ptx.flip %t, %i
  scf.for %n = %two to %eight step %six iter_args(%o = %f) -> (index) {
    %m = arith.andi %o, %six : index
    %next = arith.addi %o, %two : index
    %v = arith.xori %m, %h : index
    %w = ptx.flip %u, %v
    %zero = ptx.zero : i32
    ptx.store %zero, %w[0] : i32, !ptx.ptr<shared>
    scf.yield %next : index
  }
  func.return
}
