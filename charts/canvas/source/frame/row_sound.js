// A row of a map, heard and felt: one tone per column, and one braille character per column.

const [LOWEST, OCTAVES] = [220, 2]; // Hz; the largest value of the scale is two octaves higher
const [APART, LONG, LOUDEST] = [0.16, 0.13, 0.25]; // s from tone to tone, s that each lasts, of full volume
const BARS = ["⠀", "⣀", "⣤", "⣶", "⣿"]; // 0 to 4 rows of dots
const MASKED = "⠒"; // a dash: the mask excludes this column

// Where a value lies on its scale: 0 to 1, and its sign.
const shareOf = (value, limit) => Math.min(1, Math.abs(value) / limit) || 0;

// A value is heard as a pitch: 220 Hz for 0, two octaves higher for the limit of the scale. Columns go from the left ear
// to the right one. A masked column is silent, and so is a value of 0.
export function tonesOf({ values, limit }) {
  return values.flatMap((value, column) => {
    const share = value === null ? 0 : shareOf(value, limit);
    if (!share) return [];
    return {
      column,
      at: column * APART,
      frequency: LOWEST * 2 ** (OCTAVES * share),
      volume: LOUDEST * (0.3 + 0.7 * share),
      pan: values.length > 1 ? (2 * column) / (values.length - 1) - 1 : 0,
      wave: value < 0 ? "sawtooth" : "sine",
    };
  });
}

// Any value but 0 raises at least one row of dots.
export const brailleOf = ({ values, limit }) =>
  values
    .map((value) => (value === null ? MASKED : BARS[Math.ceil(shareOf(value, limit) * (BARS.length - 1))]))
    .join("");

export class RowSound {
  // onColumn is called when a column begins to sound, with null at the end.
  play(row, onColumn) {
    this.stop();
    const Context = window.AudioContext;
    if (!Context) return;
    const context = (this.context = new Context());
    const start = context.currentTime + 0.05;
    for (const tone of tonesOf(row)) this.sound(context, start, tone);
    const begun = performance.now();
    this.timer = setInterval(() => {
      const column = Math.floor((performance.now() - begun) / 1000 / APART);
      if (column < row.values.length) return onColumn(column);
      this.stop();
      onColumn(null);
    }, 40);
  }

  sound(context, start, { at, frequency, volume, pan, wave }) {
    const [oscillator, gain, panner] = [context.createOscillator(), context.createGain(), context.createStereoPanner()];
    Object.assign(oscillator, { type: wave });
    oscillator.frequency.value = frequency;
    panner.pan.value = pan;
    // Without a rise and a fall, a tone begins and ends with a click.
    gain.gain.setValueAtTime(0, start + at);
    gain.gain.linearRampToValueAtTime(volume, start + at + 0.015);
    gain.gain.setValueAtTime(volume, start + at + LONG - 0.03);
    gain.gain.linearRampToValueAtTime(0, start + at + LONG);
    oscillator.connect(gain).connect(panner).connect(context.destination);
    oscillator.start(start + at);
    oscillator.stop(start + at + LONG);
  }

  stop() {
    clearInterval(this.timer);
    this.context?.close();
    this.context = null;
  }
}
