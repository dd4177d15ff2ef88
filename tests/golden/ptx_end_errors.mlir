// RUN: 
// -----
// No end.
ptx.function ".entry k()" {
  ptx.end "bra"
}
// -----
// An end in the middle.
ptx.function ".visible .entry k(.param .u64 p)" {
  ptx.end "ret"
  ptx.end "ret"
}
