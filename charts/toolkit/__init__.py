"""Shared parts of all figures: style, sizes, sheets, checks, packing into bytes."""
