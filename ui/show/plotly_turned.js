// A grid of words on its side: a sentence that is too wide for a column runs down it. views/lens/lens_figures.py says of its
// figure that it may be turned (layout.meta.turns).

const ROW = 28; // height of a row of words in letters of style.TEXT_SIZE
const AROUND = 150;

export function turned({ data, layout }) {
  const { xaxis, yaxis } = layout;
  const [first, last] = xaxis.range;
  return {
    data: data.map(turnedTrace),
    layout: {
      ...layout,
      height: ROW * (last - first) + AROUND,
      xaxis: { ...yaxis, autotickangles: [0, -45, -90], title: { ...yaxis.title } },
      yaxis: { ...xaxis, range: [last, first], autotickangles: [0], tickangle: 0 },
      shapes: layout.shapes?.map(swapped),
      annotations: layout.annotations?.map(({ yanchor, yshift, ...note }) => ({
        ...swapped(note),
        xanchor: yanchor === "bottom" ? "left" : "center",
        xshift: yshift,
        yanchor: "middle",
      })),
    },
  };
}

function swapped(part) {
  const { x, y, x0, y0, x1, y1, xref, yref, ...rest } = part;
  const places = { x: y, y: x, x0: y0, y0: x0, x1: y1, y1: x1 };
  const axis = (name, to) => name?.replace(/^[xy]/, to);
  const set = Object.entries({ ...places, xref: axis(yref, "x"), yref: axis(xref, "y") });
  return { ...rest, ...Object.fromEntries(set.filter(([, value]) => value !== undefined)) };
}

const columns = (rows) => rows && Array.from(rows[0] ?? [], (_, column) => rows.map((row) => row[column]));

function turnedTrace(trace) {
  if (trace.type !== "heatmap") return { ...trace, x: trace.y, y: trace.x };
  const { z, xgap, ygap } = trace;
  return { ...trace, z: columns(Array.from(z)), text: undefined, customdata: undefined, xgap: ygap, ygap: xgap };
}
