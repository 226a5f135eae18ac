import { canvas } from "./arrival.js";

export default async function (component) {
  await canvas.arrived;
  const draw = await canvas.draw;
  try {
    return await draw({ ...component, script: canvas.script });
  } finally {
    canvas.paint();
  }
}
