/* Tensor-core steps: what one call computes, as Python lays it out (tensor_cores/compiled.py has
 * the same structures for ctypes). Shapes are in elements; rows of a register file are [warp][lane].
 */
#ifndef FRAGIR_MMA_H
#define FRAGIR_MMA_H

#include <stdint.h>

/* How D comes from A, B and C: the classes of tensor_cores/compute.py. */
enum {
    FUSED,    /* FusedMma, and wmma's Converted around it */
    EMULATED, /* EmulatedFp8 */
    SOFTWARE, /* SoftwareM8N8K4 */
    DOUBLE,   /* Double */
    INTEGER,  /* IntegerProducts */
    SCALED,   /* Scaled */
    GROUPED,  /* ScaledGroups */
};

/* Elements of A or B. */
enum { F16, BF16, TF32, TABLE, F64, INTEGERS, BITS };

/* How a sum becomes the result: arithmetic.Rounding. */
enum { RZ_F32, RZ_E8M13, RNE_F16 };

/* Where the elements of a matrix lie in registers. */
typedef struct {
    const int32_t *word;  /* [elements]: register * lanes + lane */
    const int32_t *shift; /* [elements]: its lowest bit in there */
    uint32_t mask;        /* of an element; all ones where it fills its register */
    int32_t elements;
    int32_t count; /* registers a lane */
    int32_t lanes; /* 32, or 128 of a warpgroup */
} Fragment;

/* An element type: `kind`, and for TABLE what each code means. */
typedef struct {
    const float *value;      /* [256]: 0 where not finite */
    const int32_t *exponent; /* [256] */
    const float *special;    /* [256]: value with Inf and NaN */
    int32_t kind;
    int32_t shift; /* of the element in its container */
    uint32_t mask;
    int32_t sign; /* INTEGERS: the sign bit, 0 where unsigned */
} Element;

/* Scales of one operand: where they lie, and what their codes mean. */
typedef struct {
    const int32_t *lane; /* [rows or columns] */
    int32_t shift;       /* of block 0 */
    int32_t blocks;
} Scales;

typedef struct {
    Fragment a, b, c; /* A as [product][m][k], B as [product][n / 8][k][8], C as [product][m][n] */
    Element left, right;
    const int32_t *parts;          /* [d_per][d_count * lanes]: elements of D by registers */
    const int32_t *metadata_lane;  /* [m][chunks], NULL where dense */
    const int32_t *metadata_shift; /* [m][chunks] */
    const int32_t *order;          /* [depth]: kept columns in the order of A's k, or NULL */
    const double *significand;     /* [256]: of scale codes */
    const int32_t *power;          /* [256] */
    Scales scale_a, scale_b;
    int32_t arithmetic;
    int32_t products, m, n;
    int32_t k;     /* columns of B */
    int32_t depth; /* columns of A: k, or k / 2 where sparse */
    int32_t d_count, d_per, d_bits;
    int32_t chunk, kept, group; /* sparse.Granularity */
    int32_t fraction, floor, step, rounding;
    int32_t half_addend; /* C was f16, and its exponents count as such */
    int32_t widens;      /* C is f16 and is computed with as f32 */
    int32_t narrows;     /* the f32 result becomes f16 */
    int32_t half_result; /* SOFTWARE: f16 */
    int32_t chained;     /* EMULATED */
    int32_t clamps;      /* INTEGER */
    int32_t exclusive;   /* INTEGER, single bits: xor, else and */
    int32_t direction;   /* DOUBLE: 0 nearest, 1 towards zero, 2 down, 3 up */
} Plan;

/* Registers of one operand of `count` neighbouring instructions. */
typedef struct {
    void *base;
    const int64_t *rows; /* [registers][count] */
    const int32_t *slot; /* [count]: equal where two instructions name the same registers */
    int64_t pitch;       /* words from one row to the next */
    int32_t slots;       /* how many different ones there are */
    int32_t by_place;    /* rows hold the selected warps only */
} Operand;

/* mma.sync and mma.sp for the warps `warps[first..last)`, or first..last themselves. */
typedef struct {
    const Plan *plan;
    Operand d, a, b, c;
    const uint32_t *e, *scale_a, *scale_b; /* [selected warp][32] */
    const int64_t *warps;                  /* NULL: they are neighbours */
    int64_t origin;                        /* the first of the selected warps, where neighbours */
    int64_t count;                         /* instructions */
} Mma;

/* wgmma for warpgroups. Addresses count from the start of a block's shared memory. */
typedef struct {
    const Plan *plan;
    Operand d, a;                  /* a.base NULL: A lies in shared memory */
    const uint32_t *e;             /* [group][128] */
    const uint8_t *shared;         /* the arena */
    const int64_t *home;           /* [group]: where the block's bytes begin */
    const int64_t *warps;          /* [group]: its first warp */
    const uint32_t *chunks_a;      /* [group][x]: starts of 16 bytes */
    const uint32_t *chunks_b;
    const uint8_t *accumulates;    /* [group]: scale-d */
    int64_t count_a, count_b;      /* chunks of a group */
    int32_t bits;                  /* of an element in shared memory */
    int32_t transposed_a, transposed_b;
    uint32_t negate_a, negate_b;   /* the sign bit, or 0 */
} Wgmma;

#endif
