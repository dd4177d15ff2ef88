// The k largest of every row, in order, and where they stand; of equals the first comes first. Rows may
// be of any length. A block takes 8 of them and goes over them k times; each time it looks for the best
// of what comes behind the last one found, value and place together (frag.reduce_by). Where a row has
// fewer than k, minus infinity stands, at place -1; so do NaN.
//
//   fragir run examples/data/top_k.mlir --size m=20,n=300,k=5

!part = !frag.tile<8x128xf32>
!places = !frag.tile<8x128xi32>
!value = !frag.tile<8xf32>
!place = !frag.tile<8xi32>

func.func @top_k(%x: memref<?x?xf32> {frag.sizes = ["m", "n"]},
                 %values: memref<?x?xf32> {frag.sizes = ["m", "k"]},
                 %places: memref<?x?xi32> {frag.sizes = ["m", "k"]})
    attributes {frag.grid = #frag.grid<m by 8>, frag.warps = array<i64: 4, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  %128 = arith.constant 128 : index
  %least = arith.constant 0xff800000 : f32
  %most = arith.constant 0x7f800000 : f32
  %nowhere = arith.constant 2147483647 : i32
  %before = arith.constant -1 : i32
  %n = memref.dim %x, %1 : memref<?x?xf32>
  %n32 = arith.index_cast %n : index to i32
  %k = memref.dim %values, %1 : memref<?x?xf32>
  %b = frag.block_id x
  %row = arith.muli %b, %8 : index
  %last0 = frag.fill %most : !value
  %at0 = frag.fill %before : !place
  %no_value = frag.fill %least : !value
  %no_place = frag.fill %nowhere : !place
  %iota = frag.iota dim 1 : !places
  %last, %at = scf.for %i = %0 to %k step %1 iter_args(%last1 = %last0, %at1 = %at0)
      -> (!value, !place) {
    %last_t = frag.broadcast %last1 along 1 : !value -> !part
    %at_t = frag.broadcast %at1 along 1 : !place -> !places
    %v, %p = scf.for %j = %0 to %n step %128 iter_args(%v1 = %no_value, %p1 = %no_place)
        -> (!value, !place) {
      %t = frag.load %x[%row, %j] masked : memref<?x?xf32> -> !part
      %j32 = arith.index_cast %j : index to i32
      %c = frag.map %iota, %t, %last_t, %at_t : !places, !part, !part, !places -> !places {
      ^bb0(%place: i32, %e: f32, %l: f32, %a: i32):
        %column = arith.addi %place, %j32 : i32
        %less = arith.cmpf olt, %e, %l : f32
        %same = arith.cmpf oeq, %e, %l : f32
        %later = arith.cmpi sgt, %column, %a : i32
        %next = arith.andi %same, %later : i1
        %behind = arith.ori %less, %next : i1
        %inside = arith.cmpi slt, %column, %n32 : i32
        %taken = arith.andi %behind, %inside : i1
        %r = arith.select %taken, %column, %nowhere : i32
        frag.yield %r : i32
      }
      %w = frag.map %t, %c : !part, !places -> !part {
      ^bb0(%e: f32, %column: i32):
        %taken = arith.cmpi ne, %column, %nowhere : i32
        %r = arith.select %taken, %e, %least : f32
        frag.yield %r : f32
      }
      %v2, %p2 = frag.reduce_by dim 1 %w, %c : !part, !places -> !value, !place {
      ^bb0(%e: f32, %a: i32, %f: f32, %d: i32):
        %more = arith.cmpf ogt, %f, %e : f32
        %same = arith.cmpf oeq, %f, %e : f32
        %first = arith.cmpi slt, %d, %a : i32
        %tie = arith.andi %same, %first : i1
        %other = arith.ori %more, %tie : i1
        %r = arith.select %other, %f, %e : f32
        %s = arith.select %other, %d, %a : i32
        frag.yield %r, %s : f32, i32
      }
      // tiles come in order: of equals the one before stays
      %p3 = frag.map %v1, %p1, %v2, %p2 : !value, !place, !value, !place -> !place {
      ^bb0(%e: f32, %a: i32, %f: f32, %d: i32):
        %more = arith.cmpf ogt, %f, %e : f32
        %none = arith.cmpi eq, %a, %nowhere : i32
        %other = arith.ori %more, %none : i1
        %s = arith.select %other, %d, %a : i32
        frag.yield %s : i32
      }
      %v3 = frag.map %v1, %v2 : !value, !value -> !value {
      ^bb0(%e: f32, %f: f32):
        %r = arith.maximumf %e, %f : f32
        frag.yield %r : f32
      }
      scf.yield %v3, %p3 : !value, !place
    }
    %shown = frag.map %p : !place -> !place {
    ^bb0(%a: i32):
      %none = arith.cmpi eq, %a, %nowhere : i32
      %r = arith.select %none, %before, %a : i32
      frag.yield %r : i32
    }
    %vs = frag.reshape %v : !value -> !frag.tile<8x1xf32>
    %ps = frag.reshape %shown : !place -> !frag.tile<8x1xi32>
    frag.store %vs, %values[%row, %i] masked : !frag.tile<8x1xf32>, memref<?x?xf32>
    frag.store %ps, %places[%row, %i] masked : !frag.tile<8x1xi32>, memref<?x?xi32>
    scf.yield %v, %p : !value, !place
  }
  func.return
}
