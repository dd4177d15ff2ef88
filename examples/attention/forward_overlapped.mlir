// Flash attention whose products run while the softmax is computed: heads of 64 columns, f16, one key
// or more; what it computes is what forward.mlir does. One warp fetches Q, K and V by TMA into rings;
// two warpgroups take 64 queries each. Each turn issues Q K^T of its block of keys and P V of the block
// before together, and computes the softmax of the first while the second goes on. P stays in registers.
// forward_overlapped.py writes it.
//
//   fragir run examples/attention/forward_overlapped.mlir --target sm_90a --size h=2,g=1,m=70,n=97 --arg causal=1

builtin.module {
  func.func @attention_64(%q: memref<?x?x64xf16> {frag.sizes = ["h", "m"]}, %k: memref<?x?x64xf16> {frag.sizes = ["g", "n"]}, %v: memref<?x?x64xf16> {frag.sizes = ["g", "n"]}, %o: memref<?x?x64xf16> {frag.sizes = ["h", "m"]}, %lse: memref<?x?xf32> {frag.sizes = ["h", "m"]}, %causal: i32) attributes {frag.grid = #frag.grid<m by 128, h>} {
    %bx = frag.block_id x
    %0 = arith.constant 128 : index
    %1 = arith.muli %bx, %0 : index
    %by = frag.block_id y
    %2 = arith.constant 0 : index
    %h = memref.dim %q, %2 : memref<?x?x64xf16>
    %g = memref.dim %k, %2 : memref<?x?x64xf16>
    %3 = arith.divui %h, %g : index
    %group = arith.divui %by, %3 : index
    %4 = arith.constant 1 : index
    %m = memref.dim %q, %4 : memref<?x?x64xf16>
    %5 = arith.index_cast %m : index to i32
    %n = memref.dim %k, %4 : memref<?x?x64xf16>
    %n_1 = arith.index_cast %n : index to i32
    %6 = arith.index_cast %1 : index to i32
    %7 = arith.addi %6, %n_1 : i32
    %8 = arith.constant 0 : i32
    %9 = arith.cmpi ne, %causal, %8 : i32
    %10 = arith.constant 1 : i32
    %11 = arith.subi %10, %5 : i32
    %12 = arith.select %9, %11, %8 : i32
    %reach = arith.addi %7, %12 : i32
    %13 = arith.constant 127 : i32
    %14 = arith.addi %reach, %13 : i32
    %15 = arith.minsi %14, %n_1 : i32
    %16 = arith.maxsi %15, %10 : i32
    %end = arith.index_cast %16 : i32 to index
    %queries = frag.ring 1 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
    %17 = frag.ring 2 : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
    %value_blocks = frag.ring 2 : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
    frag.roles "load" warps [1, 1] registers 24 {
      %slot = frag.acquire %queries : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
      %18 = frag.part %slot[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
      frag.copy tma %q[%by, %1, 0] to %18[] : memref<?x?x64xf16> to memref<128x64xf16, #frag.shared<swizzle = 128>>
      frag.publish %slot : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
      %19 = arith.constant 64 : index
      scf.for %i = %2 to %end step %19 {
        %slot_1 = frag.acquire %17 : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %20 = frag.part %slot_1[0] : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        frag.copy tma %k[%group, %i, 0] to %20[] : memref<?x?x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
        frag.publish %slot_1 : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %slot_2 = frag.acquire %value_blocks : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %21 = frag.part %slot_2[0] : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        frag.copy tma %v[%group, %i, 0] to %21[] : memref<?x?x64xf16> to memref<64x64xf16, #frag.shared<swizzle = 128>>
        frag.publish %slot_2 : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      }
    }, "attend" warpgroups [2, 1] registers 240 {
      %22 = frag.iota dim 0 : !frag.tile<128xi32>
      %held = frag.await %queries : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
      %23 = frag.part %held[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
      %slot_3 = frag.await %17 : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      %24 = frag.part %slot_3[0] : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      %25 = frag.undefined : !frag.tile<128x64xf32>
      %26 = arith.constant false
      %27 = frag.wgmma async %23, %24 transposed, %25 if %26 : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
      %s = frag.await %27 : !frag.in_flight<!frag.tile<128x64xf32>>
      frag.release %slot_3 : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      %28 = arith.constant -1.000000e+30 : f32
      %29 = frag.fill %28 : !frag.tile<128xf32>
      %30 = arith.index_cast %2 : index to i32
      %31 = frag.iota dim 0 : !frag.tile<64xi32>
      %left = frag.map %22 : !frag.tile<128xi32> -> !frag.tile<128xi32> {
      ^bb0(%32: i32):
        %33 = arith.addi %reach, %32 : i32
        %seen = arith.minsi %33, %n_1 : i32
        %left_1 = arith.subi %seen, %30 : i32
        frag.yield %left_1 : i32
      }
      %34 = frag.broadcast %31 along 0 : !frag.tile<64xi32> -> !frag.tile<128x64xi32>
      %35 = frag.broadcast %left along 1 : !frag.tile<128xi32> -> !frag.tile<128x64xi32>
      %s_1 = frag.map %34, %35, %s : !frag.tile<128x64xi32>, !frag.tile<128x64xi32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
      ^bb0(%36: i32, %37: i32, %s_2: f32):
        %38 = arith.cmpi slt, %36, %37 : i32
        %39 = arith.constant 0xff800000 : f32
        %s_3 = arith.select %38, %s_2, %39 : f32
        frag.yield %s_3 : f32
      }
      %40 = frag.reduce max dim 1 %s_1 : !frag.tile<128x64xf32> -> !frag.tile<128xf32>
      %41 = frag.map %29, %40 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
      ^bb0(%42: f32, %43: f32):
        %new = arith.maximumf %42, %43 fastmath<afn> : f32
        %44 = arith.constant -0.180336878 : f32
        %45 = arith.mulf %new, %44 fastmath<afn> : f32
        frag.yield %45 : f32
      }
      %46 = frag.broadcast %41 along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
      %p = frag.map %s_1, %46 : !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
      ^bb0(%s_4: f32, %47: f32):
        %48 = arith.constant 0.180336878 : f32
        %49 = math.fma %s_4, %48, %47 fastmath<afn> : f32
        %p_1 = math.exp2 %49 fastmath<afn> : f32
        frag.yield %p_1 : f32
      }
      %50 = frag.reduce add dim 1 %p : !frag.tile<128x64xf32> -> !frag.tile<128xf32>
      %51 = frag.cast %p : !frag.tile<128x64xf32> -> !frag.tile<128x64xf16>
      %52 = arith.constant 0.000000e+00 : f32
      %53 = frag.fill %52 : !frag.tile<128x64xf32>
      %new_1 = frag.map %29, %40 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
      ^bb0(%54: f32, %55: f32):
        %new_2 = arith.maximumf %54, %55 fastmath<afn> : f32
        frag.yield %new_2 : f32
      }
      %56 = arith.constant 64 : index
      %acc, %top, %total, %p_2 = scf.for %i_1 = %56 to %end step %56 iter_args(%acc_1 = %53, %top_1 = %new_1, %total_1 = %50, %p_3 = %51) -> (!frag.tile<128x64xf32>, !frag.tile<128xf32>, !frag.tile<128xf32>, !frag.tile<128x64xf16>) {
        %slot_4 = frag.await %17 : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %57 = frag.part %slot_4[0] : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %scores = frag.undefined : !frag.tile<128x64xf32>
        %scores_1 = frag.wgmma async %23, %57 transposed, %scores if %26 : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
        %old = frag.await %value_blocks : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %58 = frag.part %old[0] : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %sums = frag.wgmma async %p_3, %58, %acc_1 : !frag.tile<128x64xf16>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
        %s_5 = frag.await %scores_1 : !frag.in_flight<!frag.tile<128x64xf32>>
        frag.release %slot_4 : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %59 = arith.index_cast %i_1 : index to i32
        %60 = frag.iota dim 0 : !frag.tile<64xi32>
        %left_2 = frag.map %22 : !frag.tile<128xi32> -> !frag.tile<128xi32> {
        ^bb0(%61: i32):
          %62 = arith.addi %reach, %61 : i32
          %seen_1 = arith.minsi %62, %n_1 : i32
          %left_3 = arith.subi %seen_1, %59 : i32
          frag.yield %left_3 : i32
        }
        %63 = frag.broadcast %60 along 0 : !frag.tile<64xi32> -> !frag.tile<128x64xi32>
        %64 = frag.broadcast %left_2 along 1 : !frag.tile<128xi32> -> !frag.tile<128x64xi32>
        %s_6 = frag.map %63, %64, %s_5 : !frag.tile<128x64xi32>, !frag.tile<128x64xi32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
        ^bb0(%65: i32, %66: i32, %s_7: f32):
          %67 = arith.cmpi slt, %65, %66 : i32
          %68 = arith.constant 0xff800000 : f32
          %s_8 = arith.select %67, %s_7, %68 : f32
          frag.yield %s_8 : f32
        }
        %69 = frag.reduce max dim 1 %s_6 : !frag.tile<128x64xf32> -> !frag.tile<128xf32>
        %70 = frag.map %top_1, %69 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%top_2: f32, %71: f32):
          %new_3 = arith.maximumf %top_2, %71 fastmath<afn> : f32
          %72 = arith.constant -0.180336878 : f32
          %73 = arith.mulf %new_3, %72 fastmath<afn> : f32
          frag.yield %73 : f32
        }
        %74 = frag.broadcast %70 along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
        %p_4 = frag.map %s_6, %74 : !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
        ^bb0(%s_9: f32, %75: f32):
          %76 = arith.constant 0.180336878 : f32
          %77 = math.fma %s_9, %76, %75 fastmath<afn> : f32
          %p_5 = math.exp2 %77 fastmath<afn> : f32
          frag.yield %p_5 : f32
        }
        %78 = frag.reduce add dim 1 %p_4 : !frag.tile<128x64xf32> -> !frag.tile<128xf32>
        %total_2 = frag.map %total_1, %top_1, %69, %78 : !frag.tile<128xf32>, !frag.tile<128xf32>, !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%total_3: f32, %top_3: f32, %79: f32, %80: f32):
          %new_4 = arith.maximumf %top_3, %79 fastmath<afn> : f32
          %81 = arith.subf %top_3, %new_4 fastmath<afn> : f32
          %82 = arith.constant 0.180336878 : f32
          %83 = arith.mulf %81, %82 fastmath<afn> : f32
          %84 = math.exp2 %83 fastmath<afn> : f32
          %total_4 = math.fma %total_3, %84, %80 fastmath<afn> : f32
          frag.yield %total_4 : f32
        }
        %new_5 = frag.map %top_1, %69 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%top_4: f32, %85: f32):
          %new_6 = arith.maximumf %top_4, %85 fastmath<afn> : f32
          frag.yield %new_6 : f32
        }
        %acc_2 = frag.await %sums : !frag.in_flight<!frag.tile<128x64xf32>>
        frag.release %old : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
        %86 = frag.map %top_1, %new_5 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%top_5: f32, %new_7: f32):
          %87 = arith.subf %top_5, %new_7 fastmath<afn> : f32
          %88 = arith.constant 0.180336878 : f32
          %89 = arith.mulf %87, %88 fastmath<afn> : f32
          %90 = math.exp2 %89 fastmath<afn> : f32
          frag.yield %90 : f32
        }
        %acc_3 = frag.broadcast %86 along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
        %acc_4 = frag.map %acc_2, %acc_3 : !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
        ^bb0(%acc_5: f32, %acc_6: f32):
          %acc_7 = arith.mulf %acc_5, %acc_6 fastmath<afn> : f32
          frag.yield %acc_7 : f32
        }
        %p_6 = frag.cast %p_4 : !frag.tile<128x64xf32> -> !frag.tile<128x64xf16>
        scf.yield %acc_4, %new_5, %total_2, %p_6 : !frag.tile<128x64xf32>, !frag.tile<128xf32>, !frag.tile<128xf32>, !frag.tile<128x64xf16>
      }
      %old_1 = frag.await %value_blocks : !frag.ring<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      %91 = frag.part %old_1[0] : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      %92 = frag.wgmma async %p_2, %91, %acc : !frag.tile<128x64xf16>, memref<64x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
      %acc_8 = frag.await %92 : !frag.in_flight<!frag.tile<128x64xf32>>
      frag.release %old_1 : !frag.slot<memref<64x64xf16, #frag.shared<swizzle = 128>>>
      frag.release %held : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
      %93 = frag.map %22 : !frag.tile<128xi32> -> !frag.tile<128xi1> {
      ^bb0(%94: i32):
        %95 = arith.addi %reach, %94 : i32
        %seen_2 = arith.minsi %95, %n_1 : i32
        %96 = arith.cmpi sgt, %seen_2, %8 : i32
        frag.yield %96 : i1
      }
      %total_5 = frag.map %22, %total : !frag.tile<128xi32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
      ^bb0(%97: i32, %total_6: f32):
        %98 = arith.addi %reach, %97 : i32
        %seen_3 = arith.minsi %98, %n_1 : i32
        %99 = arith.cmpi sgt, %seen_3, %8 : i32
        %100 = arith.constant 1.000000e+00 : f32
        %total_7 = arith.select %99, %total_6, %100 : f32
        frag.yield %total_7 : f32
      }
      %101 = frag.broadcast %total_5 along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
      %answer = frag.broadcast %93 along 1 : !frag.tile<128xi1> -> !frag.tile<128x64xi1>
      %answer_1 = frag.map %answer, %acc_8, %101 : !frag.tile<128x64xi1>, !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
      ^bb0(%answer_2: i1, %acc_9: f32, %102: f32):
        %103 = arith.divf %acc_9, %102 fastmath<afn> : f32
        %answer_3 = arith.select %answer_2, %103, %52 : f32
        frag.yield %answer_3 : f32
      }
      %104 = frag.cast %answer_1 : !frag.tile<128x64xf32> -> !frag.tile<128x64xf16>
      frag.store %104, %o[%by, %1, 0] masked : !frag.tile<128x64xf16>, memref<?x?x64xf16>
      %logs = frag.map %22, %top, %total_5 : !frag.tile<128xi32>, !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
      ^bb0(%105: i32, %top_6: f32, %total_8: f32):
        %106 = arith.addi %reach, %105 : i32
        %seen_4 = arith.minsi %106, %n_1 : i32
        %107 = arith.cmpi sgt, %seen_4, %8 : i32
        %108 = arith.constant 8.000000e+00 : f32
        %109 = arith.divf %top_6, %108 fastmath<afn> : f32
        %110 = math.log %total_8 fastmath<afn> : f32
        %111 = arith.addf %109, %110 fastmath<afn> : f32
        %112 = arith.constant 0xff800000 : f32
        %logs_1 = arith.select %107, %111, %112 : f32
        frag.yield %logs_1 : f32
      }
      frag.store %logs, %lse[%by, %1] masked : !frag.tile<128xf32>, memref<?x?xf32>
    }
    func.return
  }
}
