// Saves the Plotly figure that stands in the container named by data.container. Plotly's own camera button does the
// work: it knows one format, read at the time of the click, so the format is set just before.
export default function ({ parentElement, data }) {
  parentElement.querySelector(".pictures")?.remove();
  const pictures = document.createElement("div");
  pictures.className = "pictures";
  for (const format of ["svg", "png"]) {
    const button = pictures.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.onclick = () => {
      const graph = document.querySelector(`.${CSS.escape(data.container)} .js-plotly-plot`);
      const camera = graph?.querySelector('.modebar-btn[data-title^="Download plot"]');
      if (!camera) return;
      const options = graph._context.toImageButtonOptions;
      const before = options.format;
      options.format = format;
      camera.click();
      options.format = before;
    };
  }
  parentElement.appendChild(pictures);
}
