// The bytes that charts/toolkit/payload_bytes.py packs.

import { inflate } from "./inflate.js";

const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

// -> { metadata, arrays: { name: { values, shape } } }
export async function decodePayload(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = String.fromCharCode(...bytes.subarray(0, 4));
  if (magic !== "GLAS") throw new Error(`this is no canvas payload: it begins with ${magic}`);
  const length = view.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const rest = bytes.subarray(8 + length);
  const body = header.deflated ? await inflate(rest) : rest;
  const arrays = {};
  for (const [name, { type, shape, offset }] of Object.entries(header.arrays)) {
    const Type = ARRAY_TYPES[type];
    const size = shape.reduce((product, extent) => product * extent, 1);
    // A copy of its own, because a typed array must begin at a multiple of its element size.
    const part = body.slice(offset, offset + size * Type.BYTES_PER_ELEMENT);
    arrays[name] = { values: new Type(part.buffer), shape };
  }
  return { metadata: header.metadata, arrays };
}

// The bytes of `pack` in payload_bytes.py, not deflated: they go no further than from a worker to its page.
export function encodePayload(metadata, arrays) {
  const described = {};
  let size = 0;
  for (const [name, { values, shape }] of Object.entries(arrays)) {
    const type = Object.keys(ARRAY_TYPES).find((one) => values instanceof ARRAY_TYPES[one]);
    described[name] = { type, shape, offset: size };
    size += values.byteLength;
  }
  const header = new TextEncoder().encode(JSON.stringify({ metadata, arrays: described, deflated: false }));
  const bytes = new Uint8Array(8 + header.length + size);
  bytes.set(new TextEncoder().encode("GLAS"));
  new DataView(bytes.buffer).setUint32(4, header.length, true);
  bytes.set(header, 8);
  for (const [name, { values }] of Object.entries(arrays))
    bytes.set(
      new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
      8 + header.length + described[name].offset,
    );
  return bytes;
}

// The same bytes with `more` in their metadata.
export function withMetadata(bytes, more) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  Object.assign(header.metadata, more);
  const written = new TextEncoder().encode(JSON.stringify(header));
  const changed = new Uint8Array(bytes.length - length + written.length);
  changed.set(bytes.subarray(0, 4));
  new DataView(changed.buffer).setUint32(4, written.length, true);
  changed.set(written, 8);
  changed.set(bytes.subarray(8 + length), 8 + written.length);
  return changed;
}
