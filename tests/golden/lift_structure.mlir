// RUN: -p lift-structure
// Two ways that meet, one way only, a loop that is left on a condition, and one that is left twice.
ptx.text ".version 8.0"
ptx.text ".target sm_80"
ptx.text ".address_size 64"
ptx.function ".visible .entry k(.param .u64 out)" {
  %x = ptx.op "mov.u32 $0, %tid.x" () : () -> i32
  %p = ptx.op "setp.lt.u32 $0, $1, 7" (%x) : (i32) -> i1
  cf.cond_br %p, ^a, ^b
^a:
  %y = ptx.op "add.u32 $0, $1, 1" (%x) : (i32) -> i32
  cf.br ^meet(%y : i32)
^b:
  %z = ptx.op "add.u32 $0, $1, 2" (%x) : (i32) -> i32
  cf.br ^meet(%z : i32)
^meet(%m: i32):
  cf.cond_br %p, ^loop(%m : i32), ^only
^only:
  ptx.op "bar.sync 0" () : () -> ()
  cf.br ^loop(%x : i32)
^loop(%i: i32):
  %j = ptx.op "shr.u32 $0, $1, 1" (%i) : (i32) -> i32
  %zero = ptx.op "setp.eq.u32 $0, $1, 0" (%j) : (i32) -> i1
  cf.cond_br %zero, ^after, ^loop(%j : i32)
^after:
  cf.br ^twice(%j, %i : i32, i32)
^twice(%u: i32, %v: i32):
  %w = ptx.op "add.u32 $0, $1, $2" (%u, %v) : (i32, i32) -> i32
  %high = ptx.op "setp.gt.u32 $0, $1, 99" (%w) : (i32) -> i1
  cf.cond_br %high, ^end, ^more
^more:
  %higher = ptx.op "setp.gt.u32 $0, $1, 88" (%w) : (i32) -> i1
  cf.cond_br %higher, ^end, ^twice(%w, %u : i32, i32)
^end:
  ptx.end "ret"
}
