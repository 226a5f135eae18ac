// Streamlit sends a component's script along with every new picture. It therefore travels deflated, a third of its size.
const bytes = Uint8Array.from(atob(PACKED), (character) => character.charCodeAt(0));
const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const code = new Blob([await new Response(inflated).arrayBuffer()], { type: "text/javascript" });
export default (await import(URL.createObjectURL(code))).default;
