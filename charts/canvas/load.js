// Streamlit sends a component's script along with every new picture. So this is all of it; the drawing itself travels deflated
// behind the payload (charts/canvas_module.py) and is read once, however many pictures are made with it.
const modules = (globalThis.glassformerDrawings ??= new Map());
const parts = new WeakMap();

// Streamlit hands over the same bytes as long as they have not changed, and the drawing relies on it.
function partsOf(bytes) {
  if (!parts.has(bytes)) {
    const end = bytes.length - 4;
    const start = end - new DataView(bytes.buffer, bytes.byteOffset).getUint32(end, true);
    parts.set(bytes, { payload: bytes.subarray(0, start), script: bytes.subarray(start, end) });
  }
  return parts.get(bytes);
}

async function load(script) {
  const inflated = new Blob([script]).stream().pipeThrough(new DecompressionStream("deflate"));
  const code = new Blob([await new Response(inflated).arrayBuffer()], { type: "text/javascript" });
  return (await import(URL.createObjectURL(code))).default;
}

export default async function (component) {
  const { payload, script } = partsOf(component.data);
  const key = `${script.length} ${script.subarray(-4)}`; // deflate ends in a checksum of what was packed
  if (!modules.has(key)) modules.set(key, load(script));
  const draw = await modules.get(key);
  return draw({ ...component, data: payload, script });
}
