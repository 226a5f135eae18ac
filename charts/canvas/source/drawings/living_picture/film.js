// The run as a film, recorded while it plays: the caption above, the picture as it is on the screen, below it where it comes
// from. The browser's own recorder writes it, so a film takes as long as the run; who wants no motion gets one without.

import { timer } from "d3-timer";
import { cssOf } from "../../toolkit/colour.js";
import { fileName, make, saveAs } from "../../toolkit/elements.js";
import { drawText, fontOf, wrap } from "../../toolkit/text.js";
import { say } from "../../toolkit/words.js";
import { caption } from "../../frame/provenance.js";

const TYPES = ["video/webm", "video/mp4"]; // not every browser writes both
const FRAMES = 25; // a second, at most
const BITS = 6_000_000; // a second: thin lines and small letters
const MARGIN = 16;

export const filmType = () =>
  globalThis.MediaRecorder && HTMLCanvasElement.prototype.captureStream
    ? TYPES.find((type) => MediaRecorder.isTypeSupported(type))
    : undefined;

export const filmEnding = () => filmType().split("/")[1];

// From the beginning to the end, or to where somebody stops it.
export function record(drawing) {
  const { stage, player } = drawing;
  const { canvas, paint } = sheetOf(drawing);
  const type = filmType();
  const recorder = new MediaRecorder(canvas.captureStream(FRAMES), { mimeType: type, videoBitsPerSecond: BITS });
  const progress = make("progress", { max: player.last + 1, value: 0, "aria-label": say("Recording the animation") });
  const cancel = make("button", { type: "button", textContent: say("Cancel") });
  const shown = make(
    "span",
    { className: "filming" },
    make("span", { textContent: say("Recording the animation") }),
    progress,
  );
  shown.append(cancel);
  const parts = [];
  let wanted = true;
  // A tab that nobody sees paints nothing.
  const onVisible = () => {
    if (recorder.state !== "inactive") recorder[document.hidden ? "pause" : "resume"]();
  };
  const clock = timer(() => {
    paint();
    progress.value = drawing.at + drawing.fraction;
    if (!player.clock) end();
  });
  const end = () => {
    clock.stop();
    if (recorder.state !== "inactive") recorder.stop();
    document.removeEventListener("visibilitychange", onVisible);
    shown.remove();
  };
  recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
  recorder.addEventListener("stop", () => {
    if (!wanted) return;
    saveAs(new Blob(parts, { type }), type, fileName(drawing.metadata.title, filmEnding()));
    stage.live.textContent = say("The video is saved.");
  });
  cancel.addEventListener("click", () => {
    wanted = false;
    player.stop();
    end();
    stage.canvas.focus();
  });
  stage.aborter.signal.addEventListener("abort", () => ((wanted = false), end()));
  document.addEventListener("visibilitychange", onVisible);
  stage.bar.append(shown);
  cancel.focus();
  player.begin();
  paint();
  recorder.start();
}

// What a frame of the film is painted on, of an even size, as some coders want it.
function sheetOf({ stage, metadata }) {
  const { width, height, still, theme } = stage;
  const ratio = Math.min(2, stage.ratio);
  const line = theme.size * 1.5;
  const top = MARGIN + 2 * line;
  const even = (length) => 2 * Math.ceil((length * ratio) / 2);
  const size = { width: even(width + 2 * MARGIN), height: even(top + height + line + MARGIN) };
  const canvas = Object.assign(document.createElement("canvas"), size);
  const pen = canvas.getContext("2d", { alpha: false });
  pen.scale(ratio, ratio);
  const below = caption();
  const paint = () => {
    pen.fillStyle = cssOf(theme.ground);
    pen.fillRect(0, 0, width + 2 * MARGIN, top + height + 2 * line);
    pen.font = fontOf(theme, 1.05, 600);
    wrap(pen, stage.drawing.caption?.join("") ?? metadata.title, width).forEach((words, i) =>
      drawText(pen, words, MARGIN, MARGIN + line * (i + 0.4), { colour: cssOf(theme.ink) }),
    );
    pen.drawImage(still, MARGIN, top, width, height);
    pen.font = fontOf(theme, 0.8);
    const [first = ""] = wrap(pen, below, width);
    drawText(pen, first, MARGIN, top + height + line * 0.6, { colour: cssOf(theme.muted) });
  };
  return { canvas, paint };
}
