// A basic block of a ResNet: two padded 3x3 convolutions with bias, ReLU between them, the input added, ReLU.
// Channels stand in front of rows and columns, as in torch.
//
//   fragir run examples/linalg/residual_block.mlir

#id = affine_map<(n, c, i, j) -> (n, c, i, j)>
#channel = affine_map<(n, c, i, j) -> (c)>

func.func @residual_block(
    %x: tensor<2x16x12x12xf16>, %w1: tensor<16x16x3x3xf16>, %b1: tensor<16xf32>,
    %w2: tensor<16x16x3x3xf16>, %b2: tensor<16xf32>) -> tensor<2x16x12x12xf16> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %x_padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %i: index, %j: index):
    tensor.yield %none : f16
  } : tensor<2x16x12x12xf16> to tensor<2x16x14x14xf16>
  %s1_e = tensor.empty() : tensor<2x16x12x12xf32>
  %s1_0 = linalg.fill ins(%zero : f32) outs(%s1_e : tensor<2x16x12x12xf32>) -> tensor<2x16x12x12xf32>
  %s1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x_padded, %w1 : tensor<2x16x14x14xf16>, tensor<16x16x3x3xf16>)
      outs(%s1_0 : tensor<2x16x12x12xf32>) -> tensor<2x16x12x12xf32>
  %h_e = tensor.empty() : tensor<2x16x12x12xf16>
  %h = linalg.generic {indexing_maps = [#id, #channel, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s1, %b1 : tensor<2x16x12x12xf32>, tensor<16xf32>) outs(%h_e : tensor<2x16x12x12xf16>) {
  ^bb0(%sum: f32, %b: f32, %old: f16):
    %s = arith.addf %sum, %b : f32
    %r = arith.maximumf %s, %zero : f32
    %v = arith.truncf %r : f32 to f16
    linalg.yield %v : f16
  } -> tensor<2x16x12x12xf16>
  %h_padded = tensor.pad %h low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %i: index, %j: index):
    tensor.yield %none : f16
  } : tensor<2x16x12x12xf16> to tensor<2x16x14x14xf16>
  %s2_e = tensor.empty() : tensor<2x16x12x12xf32>
  %s2_0 = linalg.fill ins(%zero : f32) outs(%s2_e : tensor<2x16x12x12xf32>) -> tensor<2x16x12x12xf32>
  %s2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%h_padded, %w2 : tensor<2x16x14x14xf16>, tensor<16x16x3x3xf16>)
      outs(%s2_0 : tensor<2x16x12x12xf32>) -> tensor<2x16x12x12xf32>
  %y_e = tensor.empty() : tensor<2x16x12x12xf16>
  %y = linalg.generic {indexing_maps = [#id, #channel, #id, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s2, %b2, %x : tensor<2x16x12x12xf32>, tensor<16xf32>, tensor<2x16x12x12xf16>) outs(%y_e : tensor<2x16x12x12xf16>) {
  ^bb0(%sum: f32, %b: f32, %a: f16, %old: f16):
    %s = arith.addf %sum, %b : f32
    %a1 = arith.extf %a : f16 to f32
    %t = arith.addf %s, %a1 : f32
    %r = arith.maximumf %t, %zero : f32
    %v = arith.truncf %r : f32 to f16
    linalg.yield %v : f16
  } -> tensor<2x16x12x12xf16>
  func.return %y : tensor<2x16x12x12xf16>
}
