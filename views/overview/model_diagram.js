// The model as two columns of blocks, data flowing upwards; lines are measured from the blocks and drawn behind them.
// All text goes through textContent: some of it is what a user typed.
const SVG = "http://www.w3.org/2000/svg";

export default function ({ parentElement, data, setTriggerValue }) {
  const before = parentElement.querySelector(".diagram");
  const held = before?.getRootNode().activeElement?.dataset.stop; // somebody chose a layer by keyboard
  before?.remove();
  const root = make("div", "diagram");
  root.setAttribute("role", "toolbar");
  root.setAttribute("aria-orientation", "vertical");
  root.setAttribute("aria-label", data.name);
  root.onkeydown = move;
  root.addEventListener("focusin", ({ target }) => restOn(target));
  const lines = root.appendChild(document.createElementNS(SVG, "svg"));
  lines.setAttribute("aria-hidden", "true");
  const places = new Map();
  data.columns.forEach((column, index) => root.appendChild(drawColumn(column, index === data.columns.length - 1)));
  parentElement.appendChild(root);
  const stops = [...root.querySelectorAll("button")];
  const again = stops.find((stop) => stop.dataset.stop === held);
  restOn(again ?? stops[0]);
  again?.focus();
  const observer = new ResizeObserver(drawLines);
  observer.observe(root);
  return () => observer.disconnect();

  // One stop for the Tab key; the arrows go on from there.
  function restOn(stop) {
    for (const other of stops) other.tabIndex = other === stop ? 0 : -1;
  }

  // Up and down: to the next row of the column; left and right: to the number beside, or to the block of that name in
  // the other column, or to the nearest there. Home: where the sentence goes in; End: where the answer comes out.
  function move(event) {
    const here = event.target.closest?.("button");
    const [x, y] = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key] ?? [];
    let to = { Home: stops[0], End: lastBlock() }[event.key];
    if (here && x !== undefined) to = nearest(here, x, y);
    if (!to || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    to.focus();
  }

  function lastBlock() {
    return stops.findLast((stop) => stop.classList.contains("block"));
  }

  function nearest(here, x, y) {
    const place = (node) => {
      const box = node.getBoundingClientRect();
      return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    };
    const column = (node) => node.closest(".column");
    const [left, top] = place(here);
    const found = stops.map((stop) => {
      const [across, down] = [place(stop)[0] - left, place(stop)[1] - top];
      const same = column(stop) === column(here);
      if (y) return same && down * y > 4 ? [Math.abs(down) * 1000 + Math.abs(across), stop] : null;
      if (across * x < 4) return null;
      if (same) return Math.abs(down) < 4 && !stop.classList.contains("block") ? [Math.abs(across), stop] : null;
      const alike = stop.dataset.stop.split(".")[1] === here.dataset.stop.split(".")[1] ? 0 : 1e7;
      return [1e6 + alike + Math.abs(down) * 1000 + Math.abs(across), stop];
    });
    return found.filter(Boolean).sort((a, b) => a[0] - b[0])[0]?.[1];
  }

  function drawColumn(column, last) {
    const made = make("section", "column");
    made.setAttribute("aria-label", column.title);
    made.appendChild(make("div", "sentence", column.reads)).title = column.reads;
    let frame = null;
    for (const block of column.blocks) {
      const drawn = drawBlock(block);
      places.set(block.id, drawn);
      if (!block.in_layer) {
        drawn.classList.add("padded");
        made.appendChild(drawn);
        continue;
      }
      if (!frame) frame = made.appendChild(make("div", "frame"));
      frame.appendChild(drawn);
    }
    frame?.appendChild(drawLayers(column));
    if (last) {
      const answer = made.appendChild(make("div", "sentence answer", data.answer));
      answer.prepend(make("small", "", data.answer_text));
      answer.title = data.answer;
    }
    made.appendChild(make("div", "title", column.title));
    return made;
  }

  function drawLayers(column) {
    const heading = make("div", "heading");
    heading.appendChild(make("span", "", column.layer_text));
    heading.title = column.layers_text;
    for (let layer = 0; layer < column.n_layers; layer++) {
      const number = heading.appendChild(make("button", "number", String(layer)));
      number.type = "button";
      number.dataset.stop = `${column.title} ${layer}`;
      number.setAttribute("aria-label", `${column.title}, ${column.layer_text} ${layer}`);
      number.setAttribute("aria-pressed", String(layer === column.layer));
      number.onclick = () => setTriggerValue("layer", layer);
    }
    return heading;
  }

  function drawBlock(block) {
    const made = make(block.clickable ? "button" : "div", `block ${block.role}`);
    made.style.setProperty("--role", `var(--${block.role})`);
    made.title = block.title;
    made.appendChild(make("span", "label", block.label));
    made.appendChild(make("span", "shape", block.shape));
    if (block.note) made.appendChild(make("span", "note", block.note));
    if (block.clickable) {
      made.type = "button";
      made.dataset.stop = block.id;
      made.setAttribute("aria-label", block.name);
      made.onclick = () => setTriggerValue("opened", block.id);
    }
    return made;
  }

  function drawLines() {
    const origin = root.getBoundingClientRect();
    if (!origin.width) return;
    const box = (id) => {
      const r = places.get(id).getBoundingClientRect();
      const [left, top] = [r.left - origin.left, r.top - origin.top];
      return { left, top, right: left + r.width, bottom: top + r.height, middle: left + r.width / 2 };
    };
    lines.replaceChildren(arrowHead("plain"), arrowHead("cross"));
    for (const column of data.columns) {
      column.blocks.forEach((block, index) => {
        const here = box(block.id);
        if (index) {
          const below = box(column.blocks[index - 1].id);
          line("plain", `M ${below.middle} ${below.top} V ${here.bottom + 3}`);
        }
        if (block.skips_from) {
          // The residual: from below the sub-layer, around it, into the sum.
          const start = box(block.skips_from);
          const [from, to, out] = [start.bottom + 6, (here.top + here.bottom) / 2, here.right + 13];
          line(
            "plain",
            `M ${start.middle} ${from} H ${out - 6} q 6 0 6 -6 V ${to + 6} q 0 -6 -6 -6 H ${here.right + 3}`,
          );
        }
      });
    }
    for (const edge of data.edges) {
      const [from, to] = [box(edge.from), box(edge.to)];
      const gutter = (from.right + 30 + to.left - 12) / 2;
      const [up, into] = [from.top - 9, (to.top + to.bottom) / 2];
      const turn = into > up ? 8 : -8;
      line(
        "cross",
        `M ${from.middle} ${from.top} V ${up} H ${gutter - 8} q 8 0 8 ${turn} V ${into - turn} q 0 ${turn} 8 ${turn} H ${to.left - 4}`,
      );
    }
  }

  function line(kind, path) {
    const drawn = lines.appendChild(document.createElementNS(SVG, "path"));
    drawn.setAttribute("d", path);
    drawn.setAttribute("class", kind);
    drawn.setAttribute("marker-end", `url(#${kind}-head)`);
  }

  function arrowHead(kind) {
    const marker = document.createElementNS(SVG, "marker");
    const size = {
      id: `${kind}-head`,
      class: kind,
      viewBox: "0 0 8 8",
      refX: 5,
      refY: 4,
      markerWidth: 8,
      markerHeight: 8,
    };
    for (const [name, value] of Object.entries({ ...size, orient: "auto", markerUnits: "userSpaceOnUse" })) {
      marker.setAttribute(name, value);
    }
    const head = marker.appendChild(document.createElementNS(SVG, "path"));
    head.setAttribute("d", "M 0 0 L 8 4 L 0 8 z");
    return marker;
  }

  function make(tag, name, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }
}
