// A component that shows nothing: it tells Python when the page's first picture has been painted, or is long in coming.

import { canvas } from "./arrival.js";

const PATIENCE = 3000; // milliseconds

export default function ({ setTriggerValue }) {
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
  Promise.race([canvas.painted, late]).then(() => setTriggerValue("painted", true));
}
