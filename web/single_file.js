// Starts the site from the one file that holds all of it (write_single_file in site.py).
const text = (packed) => new TextDecoder().decode(Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)));
const { page, worker } = JSON.parse(document.getElementById("site").textContent);
// A worker of a page of file: is no module, and imports only what it has made a Blob of itself. What it is sent until then waits.
const begin = `const early = [];
const keep = ({ data }) => early.push(data);
addEventListener("message", keep);
const script = new Blob([${JSON.stringify(text(worker))}], { type: "text/javascript" });
import(URL.createObjectURL(script)).then(() => {
  removeEventListener("message", keep);
  for (const data of early) dispatchEvent(new MessageEvent("message", { data }));
});`;
globalThis.glassformerWorker = URL.createObjectURL(new Blob([begin], { type: "text/javascript" }));
const script = Object.assign(document.createElement("script"), { type: "module" });
script.textContent = text(page);
document.head.append(script);
