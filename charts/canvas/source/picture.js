import { canvas } from "./arrival.js";

export default async function (component) {
  await canvas.arrived;
  const draw = await canvas.draw;
  return draw({ ...component, script: canvas.script });
}
