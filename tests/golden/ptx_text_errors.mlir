// RUN: 
// -----
// No PTX.
ptx.text ".vision 8.0"
// -----
// A variable of a function.
ptx.function ".visible .entry k(.param .u64 p)" {
  ptx.text ".reg .b32 x;"
  ptx.end "ret"
}
