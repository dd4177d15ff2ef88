// Flash attention whose products run while the softmax is computed: heads of 64 columns, f16, one key
// or more; what it computes is what forward.mlir does. Blocks go from tile to tile of queries. One warp
// fetches Q, K and V by TMA into rings; two warpgroups take 64 queries each. Each turn issues Q K^T of
// its block of keys and P V of the block before together, and computes the softmax of the first while
// the second goes on. Blocks of keys that a mask cuts have a loop of their own. P stays in registers.
// forward_overlapped.py writes it.
//
//   fragir run examples/attention/forward_overlapped.mlir --target sm_90a --size h=2,g=1,m=70,n=97 --arg causal=1

builtin.module {
  func.func @attention_64(%q: memref<?x?x64xf16> {frag.sizes = ["h", "m"]}, %k: memref<?x?x64xf16> {frag.sizes = ["g", "n"]}, %v: memref<?x?x64xf16> {frag.sizes = ["g", "n"]}, %o: memref<?x?x64xf16> {frag.sizes = ["h", "m"]}, %lse: memref<?x?xf32> {frag.sizes = ["h", "m"]}, %causal: i32) {
    %0 = arith.constant 0 : index
    %g = memref.dim %k, %0 : memref<?x?x64xf16>
    %h = memref.dim %q, %0 : memref<?x?x64xf16>
    %1 = frag.ring 2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
    %2 = frag.ring 2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
    %3 = frag.ring 2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
    frag.roles "load" warps [1, 1] registers 24 {
      %4 = arith.constant 1 : index
      %m = memref.dim %q, %4 : memref<?x?x64xf16>
      frag.for_tiles (%row, %col) of (%h, %m) by (1, 128) grouped 8 persistent {
        %5 = arith.constant 127 : index
        %6 = arith.addi %m, %5 : index
        %7 = arith.constant 128 : index
        %8 = arith.divui %6, %7 : index
        %9 = arith.muli %8, %7 : index
        %10 = arith.subi %9, %7 : index
        %row_1 = arith.subi %10, %col : index
        %11 = arith.index_cast %m : index to i32
        %at = arith.index_cast %row_1 : index to i32
        %12 = arith.divui %h, %g : index
        %13 = arith.divui %row, %12 : index
        %n = memref.dim %k, %4 : memref<?x?x64xf16>
        %n_1 = arith.index_cast %n : index to i32
        %14 = arith.addi %at, %n_1 : i32
        %15 = arith.constant 0 : i32
        %16 = arith.cmpi ne, %causal, %15 : i32
        %17 = arith.constant 1 : i32
        %18 = arith.subi %17, %11 : i32
        %19 = arith.select %16, %18, %15 : i32
        %reach = arith.addi %14, %19 : i32
        %20 = arith.constant 127 : i32
        %21 = arith.addi %reach, %20 : i32
        %22 = arith.minsi %21, %n_1 : i32
        %23 = arith.maxsi %22, %17 : i32
        %24 = arith.subi %23, %17 : i32
        %25 = arith.index_cast %24 : i32 to index
        %last = arith.divui %25, %7 : index
        %blocks = arith.addi %last, %4 : index
        %row_2 = arith.addi %row_1, %0 : index
        %slot = frag.acquire %1 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %26 = frag.part %slot[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        frag.copy tma %q[%row, %row_2, 0] to %26[] : memref<?x?x64xf16> to memref<128x64xf16, #frag.shared<swizzle = 128>>
        frag.publish %slot : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        scf.for %i = %0 to %blocks step %4 {
          %number = arith.subi %last, %i : index
          %27 = arith.muli %number, %7 : index
          %slot_1 = frag.acquire %2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %28 = frag.part %slot_1[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          frag.copy tma %k[%13, %27, 0] to %28[] : memref<?x?x64xf16> to memref<128x64xf16, #frag.shared<swizzle = 128>>
          frag.publish %slot_1 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %slot_2 = frag.acquire %3 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %29 = frag.part %slot_2[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          frag.copy tma %v[%13, %27, 0] to %29[] : memref<?x?x64xf16> to memref<128x64xf16, #frag.shared<swizzle = 128>>
          frag.publish %slot_2 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        }
      }
    }, "attend" warpgroups [2, 1] registers 240 {
      %30 = arith.constant 1 : index
      %m_1 = memref.dim %q, %30 : memref<?x?x64xf16>
      frag.for_tiles (%row_3, %col_1) of (%h, %m_1) by (1, 128) grouped 8 persistent {
        %31 = arith.constant 127 : index
        %32 = arith.addi %m_1, %31 : index
        %33 = arith.constant 128 : index
        %34 = arith.divui %32, %33 : index
        %35 = arith.muli %34, %33 : index
        %36 = arith.subi %35, %33 : index
        %row_4 = arith.subi %36, %col_1 : index
        %37 = arith.index_cast %m_1 : index to i32
        %at_1 = arith.index_cast %row_4 : index to i32
        %38 = arith.divui %h, %g : index
        %39 = arith.divui %row_3, %38 : index
        %n_2 = memref.dim %k, %30 : memref<?x?x64xf16>
        %n_3 = arith.index_cast %n_2 : index to i32
        %40 = arith.addi %at_1, %n_3 : i32
        %41 = arith.constant 0 : i32
        %42 = arith.cmpi ne, %causal, %41 : i32
        %43 = arith.constant 1 : i32
        %44 = arith.subi %43, %37 : i32
        %45 = arith.select %42, %44, %41 : i32
        %reach_1 = arith.addi %40, %45 : i32
        %46 = arith.constant 127 : i32
        %47 = arith.addi %reach_1, %46 : i32
        %48 = arith.minsi %47, %n_3 : i32
        %49 = arith.maxsi %48, %43 : i32
        %50 = arith.subi %49, %43 : i32
        %51 = arith.index_cast %50 : i32 to index
        %last_1 = arith.divui %51, %33 : index
        %blocks_1 = arith.addi %last_1, %30 : index
        %52 = frag.iota dim 0 : !frag.tile<128xi32>
        %held = frag.await %1 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %53 = frag.part %held[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %slot_3 = frag.await %2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %54 = frag.part %slot_3[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %55 = frag.undefined : !frag.tile<128x128xf32>
        %56 = arith.constant false
        %57 = frag.wgmma async %53, %54 transposed, %55 if %56 : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x128xf32> -> !frag.in_flight<!frag.tile<128x128xf32>>
        %s = frag.await %57 : !frag.in_flight<!frag.tile<128x128xf32>>
        frag.release %slot_3 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %58 = arith.constant -1.000000e+30 : f32
        %59 = frag.fill %58 : !frag.tile<128xf32>
        %60 = arith.subi %last_1, %0 : index
        %61 = arith.muli %60, %33 : index
        %62 = arith.index_cast %61 : index to i32
        %key = frag.iota dim 0 : !frag.tile<128xi32>
        %63 = frag.map %52 : !frag.tile<128xi32> -> !frag.tile<128xi32> {
        ^bb0(%64: i32):
          %here = arith.addi %64, %41 : i32
          %65 = arith.addi %reach_1, %here : i32
          %seen = arith.minsi %65, %n_3 : i32
          %66 = arith.subi %seen, %62 : i32
          frag.yield %66 : i32
        }
        %67 = frag.broadcast %key along 0 : !frag.tile<128xi32> -> !frag.tile<128x128xi32>
        %68 = frag.broadcast %63 along 1 : !frag.tile<128xi32> -> !frag.tile<128x128xi32>
        %sums = frag.map %67, %68, %s : !frag.tile<128x128xi32>, !frag.tile<128x128xi32>, !frag.tile<128x128xf32> -> !frag.tile<128x128xf32> {
        ^bb0(%69: i32, %70: i32, %s_1: f32):
          %71 = arith.cmpi slt, %69, %70 : i32
          %72 = arith.constant 0xff800000 : f32
          %sums_1 = arith.select %71, %s_1, %72 : f32
          frag.yield %sums_1 : f32
        }
        %73 = frag.reduce max dim 1 %sums : !frag.tile<128x128xf32> -> !frag.tile<128xf32>
        %less = frag.map %59, %73 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%74: f32, %75: f32):
          %new = arith.maximumf %74, %75 fastmath<afn> : f32
          %76 = arith.constant -0.180336878 : f32
          %less_1 = arith.mulf %new, %76 fastmath<afn> : f32
          frag.yield %less_1 : f32
        }
        %77 = frag.broadcast %less along 1 : !frag.tile<128xf32> -> !frag.tile<128x128xf32>
        %78 = arith.constant 0.000000e+00 : f32
        %acc = frag.fill %78 : !frag.tile<128x64xf32>
        %p = frag.map %sums, %77 : !frag.tile<128x128xf32>, !frag.tile<128x128xf32> -> !frag.tile<128x128xf32> {
        ^bb0(%sums_2: f32, %79: f32):
          %80 = arith.constant 0.180336878 : f32
          %81 = math.fma %sums_2, %80, %79 fastmath<afn> : f32
          %p_1 = math.exp2 %81 fastmath<afn> : f32
          frag.yield %p_1 : f32
        }
        %82 = frag.reshape %p : !frag.tile<128x128xf32> -> !frag.tile<128x16x4x2xf32>
        %83 = frag.reduce add dim 3 %82 : !frag.tile<128x16x4x2xf32> -> !frag.tile<128x16x4xf32>
        %84 = frag.reduce add dim 1 %83 : !frag.tile<128x16x4xf32> -> !frag.tile<128x4xf32>
        %85 = frag.cast %p : !frag.tile<128x128xf32> -> !frag.tile<128x128xf16>
        %86 = arith.minsi %reach_1, %n_3 : i32
        %87 = arith.maxsi %86, %41 : i32
        %88 = arith.index_cast %87 : i32 to index
        %whole = arith.divui %88, %33 : index
        %89 = arith.addi %last_1, %30 : index
        %90 = arith.subi %89, %whole : index
        %91 = arith.maxsi %90, %30 : index
        %first = arith.minsi %91, %blocks_1 : index
        %new_1 = frag.map %59, %73 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%92: f32, %93: f32):
          %new_2 = arith.maximumf %92, %93 fastmath<afn> : f32
          frag.yield %new_2 : f32
        }
        %top, %total, %p_2, %acc_1 = scf.for %i_1 = %30 to %first step %30 iter_args(%top_1 = %new_1, %total_1 = %84, %p_3 = %85, %acc_2 = %acc) -> (!frag.tile<128xf32>, !frag.tile<128x4xf32>, !frag.tile<128x128xf16>, !frag.tile<128x64xf32>) {
          %slot_4 = frag.await %2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %94 = frag.part %slot_4[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %scores = frag.undefined : !frag.tile<128x128xf32>
          %scores_1 = frag.wgmma async %53, %94 transposed, %scores if %56 : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x128xf32> -> !frag.in_flight<!frag.tile<128x128xf32>>
          %old = frag.await %3 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %95 = frag.part %old[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %sums_3 = frag.wgmma async %p_3, %95, %acc_2 : !frag.tile<128x128xf16>, memref<128x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
          %s_2 = frag.await %scores_1 : !frag.in_flight<!frag.tile<128x128xf32>>
          frag.release %slot_4 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %96 = arith.subi %last_1, %i_1 : index
          %97 = arith.muli %96, %33 : index
          %98 = arith.index_cast %97 : index to i32
          %key_1 = frag.iota dim 0 : !frag.tile<128xi32>
          %99 = frag.map %52 : !frag.tile<128xi32> -> !frag.tile<128xi32> {
          ^bb0(%100: i32):
            %here_1 = arith.addi %100, %41 : i32
            %101 = arith.addi %reach_1, %here_1 : i32
            %seen_1 = arith.minsi %101, %n_3 : i32
            %102 = arith.subi %seen_1, %98 : i32
            frag.yield %102 : i32
          }
          %103 = frag.broadcast %key_1 along 0 : !frag.tile<128xi32> -> !frag.tile<128x128xi32>
          %104 = frag.broadcast %99 along 1 : !frag.tile<128xi32> -> !frag.tile<128x128xi32>
          %sums_4 = frag.map %103, %104, %s_2 : !frag.tile<128x128xi32>, !frag.tile<128x128xi32>, !frag.tile<128x128xf32> -> !frag.tile<128x128xf32> {
          ^bb0(%105: i32, %106: i32, %s_3: f32):
            %107 = arith.cmpi slt, %105, %106 : i32
            %108 = arith.constant 0xff800000 : f32
            %sums_5 = arith.select %107, %s_3, %108 : f32
            frag.yield %sums_5 : f32
          }
          %109 = frag.reduce max dim 1 %sums_4 : !frag.tile<128x128xf32> -> !frag.tile<128xf32>
          %less_2 = frag.map %top_1, %109 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
          ^bb0(%top_2: f32, %110: f32):
            %new_3 = arith.maximumf %top_2, %110 fastmath<afn> : f32
            %111 = arith.constant -0.180336878 : f32
            %less_3 = arith.mulf %new_3, %111 fastmath<afn> : f32
            frag.yield %less_3 : f32
          }
          %112 = frag.broadcast %less_2 along 1 : !frag.tile<128xf32> -> !frag.tile<128x128xf32>
          %113 = frag.map %top_1, %109 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
          ^bb0(%top_3: f32, %114: f32):
            %new_4 = arith.maximumf %top_3, %114 fastmath<afn> : f32
            %115 = arith.subf %top_3, %new_4 fastmath<afn> : f32
            %116 = arith.constant 0.180336878 : f32
            %117 = arith.mulf %115, %116 fastmath<afn> : f32
            %118 = math.exp2 %117 fastmath<afn> : f32
            frag.yield %118 : f32
          }
          %p_4 = frag.map %sums_4, %112 : !frag.tile<128x128xf32>, !frag.tile<128x128xf32> -> !frag.tile<128x128xf32> {
          ^bb0(%sums_6: f32, %119: f32):
            %120 = arith.constant 0.180336878 : f32
            %121 = math.fma %sums_6, %120, %119 fastmath<afn> : f32
            %p_5 = math.exp2 %121 fastmath<afn> : f32
            frag.yield %p_5 : f32
          }
          %122 = frag.reshape %p_4 : !frag.tile<128x128xf32> -> !frag.tile<128x16x4x2xf32>
          %123 = frag.reduce add dim 3 %122 : !frag.tile<128x16x4x2xf32> -> !frag.tile<128x16x4xf32>
          %124 = frag.reduce add dim 1 %123 : !frag.tile<128x16x4xf32> -> !frag.tile<128x4xf32>
          %total_2 = frag.broadcast %113 along 1 : !frag.tile<128xf32> -> !frag.tile<128x4xf32>
          %total_3 = frag.map %total_1, %total_2, %124 : !frag.tile<128x4xf32>, !frag.tile<128x4xf32>, !frag.tile<128x4xf32> -> !frag.tile<128x4xf32> {
          ^bb0(%total_4: f32, %total_5: f32, %125: f32):
            %total_6 = math.fma %total_4, %total_5, %125 fastmath<afn> : f32
            frag.yield %total_6 : f32
          }
          %new_5 = frag.map %top_1, %109 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
          ^bb0(%top_4: f32, %126: f32):
            %new_6 = arith.maximumf %top_4, %126 fastmath<afn> : f32
            frag.yield %new_6 : f32
          }
          %acc_3 = frag.await %sums_3 : !frag.in_flight<!frag.tile<128x64xf32>>
          frag.release %old : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %acc_4 = frag.broadcast %113 along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
          %acc_5 = frag.map %acc_3, %acc_4 : !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
          ^bb0(%acc_6: f32, %acc_7: f32):
            %acc_8 = arith.mulf %acc_6, %acc_7 fastmath<afn> : f32
            frag.yield %acc_8 : f32
          }
          %p_6 = frag.cast %p_4 : !frag.tile<128x128xf32> -> !frag.tile<128x128xf16>
          scf.yield %new_5, %total_3, %p_6, %acc_5 : !frag.tile<128xf32>, !frag.tile<128x4xf32>, !frag.tile<128x128xf16>, !frag.tile<128x64xf32>
        }
        %top_5, %total_7, %p_7, %acc_9 = scf.for %i_2 = %first to %blocks_1 step %30 iter_args(%top_6 = %top, %total_8 = %total, %p_8 = %p_2, %acc_10 = %acc_1) -> (!frag.tile<128xf32>, !frag.tile<128x4xf32>, !frag.tile<128x128xf16>, !frag.tile<128x64xf32>) {
          %slot_5 = frag.await %2 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %127 = frag.part %slot_5[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %scores_2 = frag.undefined : !frag.tile<128x128xf32>
          %scores_3 = frag.wgmma async %53, %127 transposed, %scores_2 if %56 : memref<128x64xf16, #frag.shared<swizzle = 128>>, memref<128x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x128xf32> -> !frag.in_flight<!frag.tile<128x128xf32>>
          %old_1 = frag.await %3 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %128 = frag.part %old_1[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %sums_7 = frag.wgmma async %p_8, %128, %acc_10 : !frag.tile<128x128xf16>, memref<128x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
          %s_4 = frag.await %scores_3 : !frag.in_flight<!frag.tile<128x128xf32>>
          frag.release %slot_5 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %129 = frag.reduce max dim 1 %s_4 : !frag.tile<128x128xf32> -> !frag.tile<128xf32>
          %less_4 = frag.map %top_6, %129 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
          ^bb0(%top_7: f32, %130: f32):
            %new_7 = arith.maximumf %top_7, %130 fastmath<afn> : f32
            %131 = arith.constant -0.180336878 : f32
            %less_5 = arith.mulf %new_7, %131 fastmath<afn> : f32
            frag.yield %less_5 : f32
          }
          %132 = frag.broadcast %less_4 along 1 : !frag.tile<128xf32> -> !frag.tile<128x128xf32>
          %133 = frag.map %top_6, %129 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
          ^bb0(%top_8: f32, %134: f32):
            %new_8 = arith.maximumf %top_8, %134 fastmath<afn> : f32
            %135 = arith.subf %top_8, %new_8 fastmath<afn> : f32
            %136 = arith.constant 0.180336878 : f32
            %137 = arith.mulf %135, %136 fastmath<afn> : f32
            %138 = math.exp2 %137 fastmath<afn> : f32
            frag.yield %138 : f32
          }
          %p_9 = frag.map %s_4, %132 : !frag.tile<128x128xf32>, !frag.tile<128x128xf32> -> !frag.tile<128x128xf32> {
          ^bb0(%s_5: f32, %139: f32):
            %140 = arith.constant 0.180336878 : f32
            %141 = math.fma %s_5, %140, %139 fastmath<afn> : f32
            %p_10 = math.exp2 %141 fastmath<afn> : f32
            frag.yield %p_10 : f32
          }
          %142 = frag.reshape %p_9 : !frag.tile<128x128xf32> -> !frag.tile<128x16x4x2xf32>
          %143 = frag.reduce add dim 3 %142 : !frag.tile<128x16x4x2xf32> -> !frag.tile<128x16x4xf32>
          %144 = frag.reduce add dim 1 %143 : !frag.tile<128x16x4xf32> -> !frag.tile<128x4xf32>
          %total_9 = frag.broadcast %133 along 1 : !frag.tile<128xf32> -> !frag.tile<128x4xf32>
          %total_10 = frag.map %total_8, %total_9, %144 : !frag.tile<128x4xf32>, !frag.tile<128x4xf32>, !frag.tile<128x4xf32> -> !frag.tile<128x4xf32> {
          ^bb0(%total_11: f32, %total_12: f32, %145: f32):
            %total_13 = math.fma %total_11, %total_12, %145 fastmath<afn> : f32
            frag.yield %total_13 : f32
          }
          %new_9 = frag.map %top_6, %129 : !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
          ^bb0(%top_9: f32, %146: f32):
            %new_10 = arith.maximumf %top_9, %146 fastmath<afn> : f32
            frag.yield %new_10 : f32
          }
          %acc_11 = frag.await %sums_7 : !frag.in_flight<!frag.tile<128x64xf32>>
          frag.release %old_1 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
          %acc_12 = frag.broadcast %133 along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
          %acc_13 = frag.map %acc_11, %acc_12 : !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
          ^bb0(%acc_14: f32, %acc_15: f32):
            %acc_16 = arith.mulf %acc_14, %acc_15 fastmath<afn> : f32
            frag.yield %acc_16 : f32
          }
          %p_11 = frag.cast %p_9 : !frag.tile<128x128xf32> -> !frag.tile<128x128xf16>
          scf.yield %new_9, %total_10, %p_11, %acc_13 : !frag.tile<128xf32>, !frag.tile<128x4xf32>, !frag.tile<128x128xf16>, !frag.tile<128x64xf32>
        }
        %old_2 = frag.await %3 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %147 = frag.part %old_2[0] : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %148 = frag.wgmma async %p_7, %147, %acc_9 : !frag.tile<128x128xf16>, memref<128x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<128x64xf32> -> !frag.in_flight<!frag.tile<128x64xf32>>
        %acc_17 = frag.await %148 : !frag.in_flight<!frag.tile<128x64xf32>>
        frag.release %old_2 : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %149 = frag.reduce add dim 1 %total_7 : !frag.tile<128x4xf32> -> !frag.tile<128xf32>
        %150 = frag.map %52 : !frag.tile<128xi32> -> !frag.tile<128xi1> {
        ^bb0(%151: i32):
          %here_2 = arith.addi %151, %41 : i32
          %152 = arith.addi %reach_1, %here_2 : i32
          %seen_2 = arith.minsi %152, %n_3 : i32
          %153 = arith.cmpi sgt, %seen_2, %41 : i32
          frag.yield %153 : i1
        }
        %each = frag.map %150, %149 : !frag.tile<128xi1>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%154: i1, %155: f32):
          %156 = arith.constant 1.000000e+00 : f32
          %sums_8 = arith.select %154, %155, %156 : f32
          %each_1 = arith.divf %156, %sums_8 fastmath<afn> : f32
          frag.yield %each_1 : f32
        }
        %157 = frag.broadcast %each along 1 : !frag.tile<128xf32> -> !frag.tile<128x64xf32>
        %158 = frag.broadcast %150 along 1 : !frag.tile<128xi1> -> !frag.tile<128x64xi1>
        %159 = frag.map %158, %acc_17, %157 : !frag.tile<128x64xi1>, !frag.tile<128x64xf32>, !frag.tile<128x64xf32> -> !frag.tile<128x64xf32> {
        ^bb0(%160: i1, %acc_18: f32, %161: f32):
          %162 = arith.mulf %acc_18, %161 fastmath<afn> : f32
          %163 = arith.select %160, %162, %78 : f32
          frag.yield %163 : f32
        }
        %answer = frag.cast %159 : !frag.tile<128x64xf32> -> !frag.tile<128x64xf16>
        %164 = arith.addi %row_4, %0 : index
        frag.store %answer, %53[0, 0] : !frag.tile<128x64xf16>, memref<128x64xf16, #frag.shared<swizzle = 128>>
        frag.copy tma %53[] to %o[%row_3, %164, 0] : memref<128x64xf16, #frag.shared<swizzle = 128>> to memref<?x?x64xf16>
        frag.release %held : !frag.slot<memref<128x64xf16, #frag.shared<swizzle = 128>>>
        %logs = frag.map %150, %top_5, %149 : !frag.tile<128xi1>, !frag.tile<128xf32>, !frag.tile<128xf32> -> !frag.tile<128xf32> {
        ^bb0(%165: i1, %top_10: f32, %166: f32):
          %167 = arith.constant 1.250000e-01 : f32
          %168 = arith.mulf %top_10, %167 fastmath<afn> : f32
          %169 = arith.constant 1.000000e+00 : f32
          %sums_9 = arith.select %165, %166, %169 : f32
          %170 = math.log %sums_9 fastmath<afn> : f32
          %logs_1 = arith.addf %168, %170 fastmath<afn> : f32
          %171 = arith.constant 0xff800000 : f32
          %logs_2 = arith.select %165, %logs_1, %171 : f32
          frag.yield %logs_2 : f32
        }
        frag.store %logs, %lse[%row_3, %164] masked : !frag.tile<128xf32>, memref<?x?xf32>
      }
    }
    func.return
  }
}
