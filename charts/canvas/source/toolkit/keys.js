// Where arrow keys, Home, End and space have a meaning of their own: a figure that listens to the whole page leaves them there.
export const OWN_KEYS =
  "input, textarea, select, [contenteditable], [role=slider], [role=radiogroup], [role=tablist], " +
  "[role=listbox], [role=menu], [role=grid], [role=spinbutton], canvas, .table";
