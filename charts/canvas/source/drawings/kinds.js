// Which drawing is made for which kind of payload.

import { LivingPictureDrawing } from "./living_picture.js";
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
  living_picture: LivingPictureDrawing,
};

export function createDrawing(payload, previous, stage) {
  const Drawing = DRAWINGS[payload.metadata.kind];
  return Drawing.renewed?.(payload, previous) ?? new Drawing(payload, previous, stage);
}
