// Descriptors of matrices in shared memory (wgmma, tcgen05) and of tcgen05 instructions.
// The fields are those of the table that the page is made with.

export class DescriptorError extends Error {}

export function number(text) {
  const bare = text.trim().replace(/_|'/g, "").replace(/u?l?l$/i, "");
  if (/^(0x[0-9a-f]+|0b[01]+|\d+)$/i.test(bare)) return BigInt(bare);
  if (/^[0-9a-f]+$/i.test(bare)) return BigInt(`0x${bare}`);
  throw new DescriptorError(`'${text.trim()}' is no number`);
}

const bits = (word, { high, low }) => Number((word >> BigInt(low)) & ((1n << BigInt(high - low + 1)) - 1n));

// {fields: [{name, high, low, value, meaning}], reserved}; bytes of addresses and offsets.
export function decode(word, fields) {
  if (word >> 64n) throw new DescriptorError(`0x${word.toString(16)} is no 64-bit descriptor`);
  let reserved = word;
  const found = fields.map((field) => {
    const mask = (1n << BigInt(field.high - field.low + 1)) - 1n;
    reserved &= ~(mask << BigInt(field.low));
    const value = bits(word, field) * (field.bytes ? 16 : 1);
    return { ...field, value };
  });
  return { fields: found, reserved };
}

// The word of named values; bytes of addresses and offsets, as `decode` gives them.
export function encode(values, fields) {
  let word = 0n;
  for (const field of fields) {
    const value = (values[field.name] ?? 0) / (field.bytes ? 16 : 1);
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** (field.high - field.low + 1))
      throw new DescriptorError(`${values[field.name]} does not fit into ${field.name}`);
    word |= BigInt(value) << BigInt(field.low);
  }
  return word;
}

// The fields of an instruction descriptor; m, n and types in words.
export function decodeInstruction(word, kind) {
  if (word >> 32n) throw new DescriptorError(`0x${word.toString(16)} is no 32-bit descriptor`);
  return kind.fields.map((field) => {
    let value = bits(word, field) * field.unit;
    const names = kind.codes[field.name];
    if (names) {
      const known = Object.entries(names).find(([, code]) => code === value);
      value = known ? known[0] : `undefined (${value})`;
    }
    return { ...field, value };
  });
}

// Where the bytes of 8 rows of a swizzled tile stand: [row][chunk of 16 bytes] -> chunk.
export function swizzlePattern(width, atom = 16) {
  const rows = 8;
  const chunks = Math.max(1, width / atom);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: chunks }, (_, chunk) => chunk ^ (Math.floor((row * width) / 128) % chunks)),
  );
}

// Swizzle modes in words and numbers: [bytes, bytes of an atom], by kind and code.
const MODES = {
  wgmma: { 0: [0, 16], 1: [128, 16], 2: [64, 16], 3: [32, 16] },
  tcgen05: { 0: [0, 16], 1: [128, 32], 2: [128, 16], 4: [64, 16], 6: [32, 16] },
};

// {width, atom}, or null for a code that means nothing.
export function swizzleOf(kind, code) {
  const found = MODES[kind]?.[code];
  return found ? { width: found[0], atom: found[1] } : null;
}
