// One warp at lane level, one operation an instruction: ldmatrix reads four 8x8 matrices of f16 from
// shared memory, movmatrix transposes each, stmatrix (sm_90) writes them back.
//
// The 16x16 matrix lies in shared memory row after row, 32 bytes a row. Lane l gives the address
// of row l % 16, columns 8 (l / 16) and on, so that registers 0 to 3 hold the quadrants (0, 0),
// (8, 0), (0, 8) and (8, 8). Each is transposed where it stands.
//
//   fragir compile examples/stmatrix.mlir --target sm_90

func.func @stmatrix(%a: !ptx.ptr<global>, %d: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %memory = ptx.shared 512 : !ptx.ptr<shared>
  %lane = ptx.special "tid.x"

  // 16 bytes a lane: global to shared memory
  %from = ptx.offset %a, %lane * 16 : !ptx.ptr<global> -> !ptx.ptr<global>
  %to = ptx.offset %memory, %lane * 16 : !ptx.ptr<shared> -> !ptx.ptr<shared>
  %copied = ptx.load %from[0] : !ptx.ptr<global> -> vector<8xf16>
  ptx.store %copied, %to[0] : vector<8xf16>, !ptx.ptr<shared>
  ptx.sync "bar.warp.sync", -1

  %four = arith.constant 4 : index
  %fifteen = arith.constant 15 : index
  %row = arith.andi %lane, %fifteen : index
  %half = arith.shrui %lane, %four : index
  %at = ptx.offset %memory, %row * 32 : !ptx.ptr<shared> -> !ptx.ptr<shared>
  %address = ptx.offset %at, %half * 16 : !ptx.ptr<shared> -> !ptx.ptr<shared>
  %quadrants = ptx.ldmatrix %address[0] : vector<8xf16>
  %turned = ptx.movmatrix %quadrants : vector<8xf16> -> vector<8xf16>
  ptx.stmatrix %turned, %address[0] : vector<8xf16>
  ptx.sync "bar.warp.sync", -1

  %result = ptx.load %to[0] : !ptx.ptr<shared> -> vector<8xf16>
  %out = ptx.offset %d, %lane * 16 : !ptx.ptr<global> -> !ptx.ptr<global>
  ptx.store %result, %out[0] : vector<8xf16>, !ptx.ptr<global>
  func.return
}
