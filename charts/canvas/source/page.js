// A drawing without Streamlit: in a file on a disk, or in a notebook (page.html). What a click would tell Python, it does itself.

import { createDrawing } from "./drawings/kinds.js";
import { Stage } from "./frame/stage.js";
import { fromBase64 } from "./toolkit/base64.js";

export async function showPage() {
  const read = (id) => fromBase64(document.getElementById(id).textContent);
  const stage = new Stage(document.querySelector("main").attachShadow({ mode: "open" }));
  const setTriggerValue = (_, value) => {
    stage.drawing.choose?.(value);
    stage.refresh();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stage.refresh());
  await stage.update({ data: read("payload"), script: read("script"), setTriggerValue }, createDrawing);
  globalThis.glassformerView = stage.drawing.metadata.view;
}
