// Pictures of a figure of Plotly, as bytes. Plotly's own camera button makes them: it reads its options, the data and the
// layout at the moment of the click, gives the picture to a link and clicks that.

const CAMERA = '.modebar-btn[data-title^="Download plot"]';
const PATIENCE = 30_000; // milliseconds

// change: { data, layout } that are drawn instead, and are gone again afterwards. -> Promise of a Blob
export function picture(graph, { format, width, height, scale = 1 }, { data, layout }) {
  const camera = graph.querySelector(CAMERA);
  const name = `picture ${Math.random()}`;
  const caught = linkNamed(name);
  const [known, kept] = [graph._context.toImageButtonOptions, { data: graph.data, layout: graph.layout }];
  const before = { ...known };
  try {
    Object.assign(graph, { data, layout });
    Object.assign(known, { format, filename: name, scale, ...(width ? { width, height } : {}) });
    camera.click();
  } finally {
    Object.assign(graph, kept);
    for (const option of Object.keys(known)) delete known[option];
    Object.assign(known, before);
  }
  return caught;
}

// The link that carries our name is read instead of followed, once.
function linkNamed(name) {
  const click = HTMLAnchorElement.prototype.click;
  return new Promise((resolve, reject) => {
    const restore = () => (HTMLAnchorElement.prototype.click = click);
    const over = setTimeout(() => (restore(), reject(new Error("Plotly made no picture"))), PATIENCE);
    HTMLAnchorElement.prototype.click = function () {
      if (!this.download.startsWith(name)) return click.call(this);
      clearTimeout(over);
      restore();
      resolve(read(this.href));
    };
  });
}

// At once: Plotly takes the address back right after the click. A request that waits gives its bytes as letters only.
function read(address) {
  const request = new XMLHttpRequest();
  request.open("GET", address, false);
  request.overrideMimeType("text/plain; charset=x-user-defined");
  request.send();
  return new Blob([Uint8Array.from(request.responseText, (letter) => letter.charCodeAt(0) & 255)]);
}
