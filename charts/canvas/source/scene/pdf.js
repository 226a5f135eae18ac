// PDF of a figure. What writes it is large, so it comes from the page's server when somebody first asks for it (the frame of
// a page, ui/shell/frame.js, asks; source/loader.js brings it). A page that was saved has none.

const place = (globalThis.glassformerPdf ??= {});

export const canWritePdf = () => Boolean(place.ask);

// -> Promise of a Blob
export async function pdfOf(svg, title) {
  place.writer ??= new Promise((resolve) => {
    place.arrive = resolve;
    place.ask();
  });
  const { pdf } = await place.writer;
  return pdf(svg, title);
}
