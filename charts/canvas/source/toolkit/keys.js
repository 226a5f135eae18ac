// Where arrow keys, Home, End and space have a meaning of their own: a figure that listens to the whole page leaves them there.
const OWN_KEYS =
  "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=tablist], " +
  "[role=listbox], [role=menu], [role=grid], [role=spinbutton], canvas, .table";

// Whether a key that is pressed anywhere on the page is for such a figure.
export const isForFigure = (event) =>
  !(event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) &&
  !event.composedPath()[0].closest?.(OWN_KEYS);

// The step that a key leads to from the step `at`; undefined for another key.
export const stepTo = (key, at, last) => ({ ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last })[key];
