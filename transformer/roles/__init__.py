"""Roles of heads over many sentences, by the tests of the literature: one measure a file, each with its chance level.

A threshold is a published one, or the chance level and a fixed distance; it is said in the file of its measure.
``measures`` puts them together.
"""
