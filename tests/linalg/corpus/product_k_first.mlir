// A product whose first loop is summed, of transposed A
// arrays: a 32x20, b 32x24, c 20x24
// result: a.T @ b + c
func.func @f(%a: tensor<32x20xbf16>, %b: tensor<32x24xbf16>, %c: tensor<20x24xf32>) -> tensor<20x24xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(k,i,j)->(k,i)>, affine_map<(k,i,j)->(k,j)>, affine_map<(k,i,j)->(i,j)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%a, %b : tensor<32x20xbf16>, tensor<32x24xbf16>) outs(%c : tensor<20x24xf32>) {
  ^bb0(%x: bf16, %y: bf16, %o: f32):
    %xe = arith.extf %x : bf16 to f32
    %ye = arith.extf %y : bf16 to f32
    %m = arith.mulf %xe, %ye : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<20x24xf32>
  return %r : tensor<20x24xf32>
}
