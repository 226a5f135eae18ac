// The colour bar with its two ends, what it measures, and what hatching means; wraps on narrow screens.

import { cssOf } from "../toolkit/colour.js";
import { hatch } from "../toolkit/hatch.js";
import { threeDigits } from "../toolkit/numbers.js";
import { drawText, fontOf, wrap } from "../toolkit/text.js";
import { say } from "../toolkit/words.js";

export class Legend {
  // text: what the colours mean; masked: whether hatched cells occur
  // ends: what stands at the ends of the bar, if not the numbers; band: what lies on one band
  // faded: what pale maps are, which paper does not have
  constructor({ text, scale, limit, ends, masked, maskedText = say("masked: cannot be attended to"), band, faded }) {
    Object.assign(this, { text, scale, limit, ends, masked, maskedText, band, faded });
  }

  items(context, theme, room) {
    context.font = fontOf(theme, 0.8);
    const ends =
      this.ends ??
      (this.scale === "diverging"
        ? [`−${threeDigits(this.limit)}`, threeDigits(this.limit)]
        : ["0", this.limit === 1 ? "1" : threeDigits(this.limit)]);
    const width = (text) => context.measureText(text).width;
    const around = width(ends[0]) + width(ends[1]) + 16;
    const bar = Math.max(24, Math.min(9.5 * theme.size, room - around)); // beside a long row of labels there is little room
    const items = [{ kind: "bar", ends, bar, width: around + bar }];
    if (this.text) items.push({ kind: "text", text: this.text, width: width(this.text) });
    if (this.faded && !theme.paper) items.push({ kind: "text", text: this.faded, width: width(this.faded) });
    if (this.masked)
      items.push({ kind: "hatch", text: this.maskedText, width: width(this.maskedText) + theme.size * 1.4 + 6 });
    if (this.band) items.push({ kind: "band", text: this.band, width: width(this.band) + theme.size * 1.4 + 6 });
    return items;
  }

  // Places the items from left to right; returns the height they take.
  layout(context, theme, { x, y, width }) {
    const line = theme.size * 1.5;
    let [atX, atY] = [x, y];
    this.placed = this.items(context, theme, width).flatMap((item) => {
      if (atX > x && atX + item.width > x + width) [atX, atY] = [x, atY + line];
      // What is wider than everything takes two lines.
      const box = item.kind === "hatch" || item.kind === "band" ? theme.size * 1.4 + 6 : 0;
      const texts = item.kind === "bar" ? [item.text] : wrap(context, item.text, x + width - atX - box);
      const placed = texts.map((text, i) => ({
        ...item,
        text,
        first: i === 0,
        x: atX,
        y: atY + line / 2 + i * theme.size,
      }));
      atX += item.width + (item.kind === "bar" ? 14 : 24);
      atY += (texts.length - 1) * theme.size;
      return placed;
    });
    return atY + line - y;
  }

  paint(context, theme, ratio) {
    context.font = fontOf(theme, 0.8);
    const colour = cssOf(theme.muted);
    for (const item of this.placed) {
      if (item.kind === "text") drawText(context, item.text, item.x, item.y, { colour });
      if (item.kind === "hatch" || item.kind === "band") {
        context.fillStyle = item.kind === "hatch" ? hatch(context, theme, ratio) : cssOf(theme.primary, 0.22);
        context.beginPath();
        context.roundRect(item.x, item.y - theme.size * 0.42, theme.size * 1.4, theme.size * 0.84, 3);
        if (item.first) context.fill();
        drawText(context, item.text, item.x + theme.size * 1.4 + 6, item.y, { colour });
      }
      if (item.kind === "bar") this.paintBar(context, theme, item, colour);
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
