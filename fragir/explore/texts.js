// What may be pasted: any layout's text, MNEMONIC:OPERAND of the table, or an operand of tcgen05.

import { operandLayout } from "./instruction.js";
import { LayoutError } from "./layout.js";
import { read } from "./read.js";
import { isTensor, tensorLayout } from "./tensor.js";

const OPERAND = /^\s*([a-z][\w.:]*\.[\w.:]+):([a-z][a-z-]*)\s*$/;
const ATTRIBUTE = /^\s*#frag\.layout\s*<\s*"([^"]*)"\s*>\s*$/;

// `tensor`: the rules of the products and copies of tcgen05.
export function readAny(text, tile, instructions, tensor = null) {
  if (!text.trim()) throw new LayoutError("paste a layout, or choose an example");
  if (tensor && isTensor(text)) return tensorLayout(text, tensor, instructions);
  const found = OPERAND.exec(text);
  if (found) {
    const instruction = instructions.find((one) => one.mnemonic === found[1]);
    if (!instruction) throw new LayoutError(`there is no instruction ${found[1]}`);
    const operand = instruction.operands[found[2]];
    const names = Object.keys(instruction.operands);
    if (!operand) throw new LayoutError(`${found[1]} has no operand ${found[2]}: ${names.join(", ")}`);
    if (operand.text === null) throw new LayoutError(`operand ${found[2]} lies in shared memory`);
    if (tile && tile.join() !== operand.shape.join())
      throw new LayoutError(`the operand has ${operand.shape.join("x")}; \`fragir layout\` spreads it over other tiles`);
    return operandLayout(operand, { blocks: instruction.blocks });
  }
  const attribute = ATTRIBUTE.exec(text);
  return read(attribute ? attribute[1] : text, tile);
}

// `64x32` as [64, 32]; null where nothing is written.
export function readTile(text) {
  if (!text.trim()) return null;
  if (!/^\s*\d+(\s*[x,×]\s*\d+)*\s*$/.test(text)) throw new LayoutError(`'${text}' is no tile: 64x32`);
  return text.match(/\d+/g).map(Number);
}

export const EXAMPLES = [
  ["fragir", "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]", {}],
  [
    "formula",
    "groupID = %laneid >> 2\nthreadID_in_group = %laneid % 4\n" +
      "row = groupID for ai where 0 <= i < 2 || 4 <= i < 6\n      groupID + 8 Otherwise\n" +
      "col = (threadID_in_group * 2) + (i & 0x1) for ai where i < 4\n" +
      "      (threadID_in_group * 2) + (i & 0x1) + 8 for ai where i >= 4",
    {},
  ],
  ["CuTe", "((4,8),(2,2)):((32,1),(16,8))", { tile: "16x8" }],
  [
    "Triton",
    "tensor<32x64xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], " +
      "warpsPerCTA = [4, 1], order = [1, 0]}>>",
    {},
  ],
  ["F2", 'f2:{"lane": [[1, 1], [2, 2], [4, 4], [8, 0], [0, 0]], "register": [[0, 1], [0, 2], [0, 4]]}', {}],
  [
    "swizzled memory",
    "row [8:^144 8:1024] col [64:2] dims (byte)",
    { show: "memory", access: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:a" },
  ],
  [
    "bank conflicts",
    "row [16:128] col [64:2] dims (byte)",
    { show: "memory", access: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:a" },
  ],
  ["tensor memory", "tcgen05.mma.m64n32k16.f16:d", {}],
  [
    "tensor memory in registers",
    "tcgen05.mma.m64n32k16.f16:d by tcgen05.ld.sync.aligned.16x256b.x4.b32",
    { bits: "32" },
  ],
];

export const CONVERSIONS = [
  [
    "e4m3: sums to the next A",
    "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)]",
    "lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0) 2:(0,16)]",
  ],
  [
    "f16: sums to the next A",
    "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:a",
  ],
  [
    "sums to rows of 8",
    "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
    "lane [2:(0,4) 16:(1,0)] element [4:(0,1)]",
  ],
  [
    "between warps",
    "warp [2:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
    "warp [2:(0,4)] lane [32:(1,0)] element [4:(0,1)]",
  ],
];
