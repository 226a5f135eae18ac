// Tells Share how high the page's first figure is (frame.js knows which one that is), and in what window.
export default function ({ setStateValue }) {
  setStateValue("seen", { figure: globalThis.glassformerFigureHeight?.() ?? 0, window: window.innerHeight });
}
