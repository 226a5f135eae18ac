"""Figures: pure functions from numpy arrays, DataFrames and plain data classes to Plotly figures.

Nothing here imports torch or streamlit, so every figure also works in a notebook. Colours, fonts, sizes and axes are
defined in ``charts.toolkit.style``, requirements on arrays in ``charts.toolkit.checks``.
"""
