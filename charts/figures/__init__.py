"""One file a figure: from arrays with labels to a Plotly or Altair figure."""
