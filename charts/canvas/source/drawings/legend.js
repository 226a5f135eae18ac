// The colour bar with its two ends, what it measures, and what hatching means; wraps on narrow screens.

import { cssOf } from "../toolkit/colour.js";
import { hatch } from "../toolkit/hatch.js";
import { threeDigits } from "../toolkit/numbers.js";
import { drawText, fontOf, wrap } from "../toolkit/text.js";
import { say } from "../toolkit/words.js";

export class Legend {
  // text: what the colours mean; masked: whether hatched cells occur
  // ends: what stands at the ends of the bar, if not the numbers; band: what lies on one band
  // faded: what pale maps are; groups: of each frame's colour what it means and its number
  constructor({ masked, maskedText = say("masked: cannot be attended to"), groups = [], ...others }) {
    Object.assign(this, { masked, maskedText, groups, ...others });
  }

  items(context, theme, room) {
    context.font = fontOf(theme, 0.8);
    const ends =
      this.ends ||
      (this.scale === "diverging"
        ? [`−${threeDigits(this.limit)}`, threeDigits(this.limit)]
        : ["0", this.limit === 1 ? "1" : threeDigits(this.limit)]);
    const width = (text) => context.measureText(text).width;
    const around = width(ends[0]) + width(ends[1]) + 16;
    const bar = Math.max(24, Math.min(9.5 * theme.size, room - around)); // beside a long row of labels there is little room
    const item = (text, fill, box = fill ? theme.size * 1.4 + 6 : 0) =>
      text && { text, fill, box, width: width(text) + box };
    return [
      { ends, bar, box: 0, width: around + bar },
      item(this.text),
      ...this.groups.map(([text, colour]) => item(text, theme.heads[colour])),
      item(this.faded),
      item(this.masked && this.maskedText, "hatch"),
      item(this.band, cssOf(theme.primary, 0.22)),
    ].filter(Boolean);
  }

  // Places the items from left to right; returns the height they take.
  layout(context, theme, { x, y, width }) {
    const line = theme.size * 1.5;
    let [atX, atY] = [x, y];
    this.placed = this.items(context, theme, width).flatMap((item) => {
      if (atX > x && atX + item.width > x + width) [atX, atY] = [x, atY + line];
      // What is wider than everything takes two lines.
      const texts = item.bar ? [""] : wrap(context, item.text, x + width - atX - item.box);
      const placed = texts.map((text, i) => ({
        ...item,
        text,
        first: i === 0,
        x: atX,
        y: atY + line / 2 + i * theme.size,
      }));
      atX += item.width + (item.bar ? 14 : 24);
      atY += (texts.length - 1) * theme.size;
      return placed;
    });
    return atY + line - y;
  }

  paint(context, theme, ratio) {
    context.font = fontOf(theme, 0.8);
    const colour = cssOf(theme.muted);
    for (const item of this.placed) {
      if (item.fill) {
        context.fillStyle = item.fill === "hatch" ? hatch(context, theme, ratio) : item.fill;
        context.beginPath();
        context.roundRect(item.x, item.y - theme.size * 0.42, theme.size * 1.4, theme.size * 0.84, 3);
        if (item.first) context.fill();
      }
      if (item.bar) this.paintBar(context, theme, item, colour);
      else drawText(context, item.text, item.x + item.box, item.y, { colour });
    }
  }

  paintBar(context, theme, item, colour) {
    const start = item.x + context.measureText(item.ends[0]).width + 8;
    const tall = theme.size * 0.62;
    drawText(context, item.ends[0], item.x, item.y, { colour });
    drawText(context, item.ends[1], start + item.bar + 8, item.y, { colour });
    const colours = theme[this.scale];
    const gradient = context.createLinearGradient(start, 0, start + item.bar, 0);
    for (let i = 0; i <= 32; i++)
      gradient.addColorStop(i / 32, cssOf(colours[Math.round((i / 32) * (colours.length - 1))]));
    context.fillStyle = gradient;
    context.strokeStyle = cssOf(theme.faint);
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(start, item.y - tall / 2, item.bar, tall, 3);
    context.fill();
    context.stroke();
  }
}
