// The model as two columns of blocks, data flowing upwards; lines are measured from the blocks and drawn behind them.
// All text goes through textContent: some of it is what a user typed.
const SVG = "http://www.w3.org/2000/svg";

export default function ({ parentElement, data, setTriggerValue }) {
  parentElement.querySelector(".diagram")?.remove();
  const root = make("div", "diagram");
  const lines = root.appendChild(document.createElementNS(SVG, "svg"));
  lines.setAttribute("aria-hidden", "true");
  const places = new Map();
  data.columns.forEach((column, index) => root.appendChild(drawColumn(column, index === data.columns.length - 1)));
  parentElement.appendChild(root);
  const observer = new ResizeObserver(drawLines);
  observer.observe(root);
  return () => observer.disconnect();

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
