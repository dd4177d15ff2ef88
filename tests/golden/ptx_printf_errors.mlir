// RUN: 
// -----
// printf has no f32: it takes f64.
func.func @k(%f: f32) attributes {ptx.ntid = 32 : i64} {
  ptx.printf "%g", %f : f32
  func.return
}
