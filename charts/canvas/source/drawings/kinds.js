// Which drawing is made for which kind of payload.

import * as heads from "./heads.js";
import * as lines from "./lines.js";
import * as livingPicture from "./living_picture.js";
import * as map from "./map.js";
import * as mask from "./mask.js";
import * as steps from "./steps.js";

export const KINDS = { map, mask, grid: heads, heads, overview: heads, lines, steps, living_picture: livingPicture };
