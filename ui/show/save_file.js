// Saves a file that the server has just made (data: id, name, type, and its bytes in base64), once.
const saved = (globalThis.glassformerSaved ??= new Set());

export default function ({ data }) {
  if (saved.has(data.id)) return;
  saved.add(data.id);
  saveAs(Uint8Array.from(atob(data.bytes), (letter) => letter.charCodeAt(0)), data.type, data.name);
}
