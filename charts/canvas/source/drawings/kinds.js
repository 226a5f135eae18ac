// Which drawing is made for which kind of payload.

import { GridDrawing } from "./grid.js";
import { HeadsDrawing } from "./heads.js";
import { LinesDrawing } from "./lines.js";
import { MapDrawing } from "./map.js";
import { MaskDrawing } from "./mask.js";
import { OverviewDrawing } from "./overview.js";
import { StepsDrawing } from "./steps.js";

const DRAWINGS = {
  map: MapDrawing,
  mask: MaskDrawing,
  grid: GridDrawing,
  heads: HeadsDrawing,
  lines: LinesDrawing,
  overview: OverviewDrawing,
  steps: StepsDrawing,
};

export const createDrawing = (payload, previous, stage) =>
  new DRAWINGS[payload.metadata.kind](payload, previous, stage);
