"""What the help of `fragir layout` ends in."""

EXAMPLES = (
    (
        "The whole operand:",
        "fragir layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 a",
    ),
    (
        "Who holds row 9, column 3 of D:",
        "fragir layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d --at 9,3",
    ),
    (
        "A layout of one's own, lane by lane:",
        "fragir layout 'lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]' --view hardware",
    ),
    (
        "Swizzled shared memory, by banks, as a picture:",
        "fragir layout 'row [64:^144] col [64:2] dims (byte)' --view memory --format svg"
        " > memory.svg",
    ),
)
