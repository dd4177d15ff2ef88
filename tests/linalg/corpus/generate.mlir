// A tensor of what a region gives
// arrays: a 13
// result: a[:, None] * np.arange(7)
func.func @f(%a: tensor<13xf32>) -> tensor<13x7xf32> {
  %r = tensor.generate {
  ^bb0(%i: index, %j: index):
    %x = tensor.extract %a[%i] : tensor<13xf32>
    %n = arith.index_cast %j : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.mulf %x, %f : f32
    tensor.yield %y : f32
  } : tensor<13x7xf32>
  return %r : tensor<13x7xf32>
}
