// A softmax as torch-mlir writes it, with places of maxima that nobody reads
// arrays: x 6x40
// result: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
func.func @f(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %ninf = arith.constant 0xFF800000 : f32
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<6x40xf32>
  %e1 = tensor.empty() : tensor<6x1xf32>
  %ei = tensor.empty() : tensor<6x1xi64>
  %fi = linalg.fill ins(%c0 : i64) outs(%ei : tensor<6x1xi64>) -> tensor<6x1xi64>
  %fm = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<6x1xf32>) -> tensor<6x1xf32>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,0)>, affine_map<(i,j)->(i,0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x40xf32>) outs(%fm, %fi : tensor<6x1xf32>, tensor<6x1xi64>) {
  ^bb0(%a: f32, %o: f32, %p: i64):
    %k = linalg.index 1 : index
    %k64 = arith.index_cast %k : index to i64
    %mx = arith.maximumf %a, %o : f32
    %g = arith.cmpf ogt, %a, %o : f32
    %s = arith.select %g, %k64, %p : i64
    linalg.yield %mx, %s : f32, i64
  } -> (tensor<6x1xf32>, tensor<6x1xi64>)
  %d = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,0)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m#0 : tensor<6x40xf32>, tensor<6x1xf32>) outs(%e : tensor<6x40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6x40xf32>
  %x2 = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<6x40xf32>) outs(%e : tensor<6x40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<6x40xf32>
  %fz = linalg.fill ins(%z : f32) outs(%e1 : tensor<6x1xf32>) -> tensor<6x1xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,0)>], iterator_types = ["parallel", "reduction"]} ins(%x2 : tensor<6x40xf32>) outs(%fz : tensor<6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6x1xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(i,0)>, affine_map<(i,j)->(i,j)>], iterator_types = ["parallel", "parallel"]} ins(%x2, %t : tensor<6x40xf32>, tensor<6x1xf32>) outs(%e : tensor<6x40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6x40xf32>
  return %q : tensor<6x40xf32>
}
