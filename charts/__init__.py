"""Figures: pure functions from numpy arrays, DataFrames and the plain data classes to Plotly figures.

Nothing here imports torch or streamlit, so every figure works in a notebook as well. Colours, fonts, sizes and
axes come from ``charts.toolkit.style``; what an array must look like is checked in ``charts.toolkit.checks``.
"""
