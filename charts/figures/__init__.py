"""Figures that several pages share, one per file: from labelled arrays to Plotly or Altair."""
