"""The sections of the Add & Norm page."""
