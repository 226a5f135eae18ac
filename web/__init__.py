"""The web page that runs the models in the browser: a static site, written by ``python -m glassformer web FOLDER``."""
