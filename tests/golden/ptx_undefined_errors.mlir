// RUN: 
// -----
// A type that no register has.
ptx.function ".visible .entry k(.param .u64 p)" {
  %x = ptx.undefined : tensor<4xf32>
  ptx.end "ret"
}
