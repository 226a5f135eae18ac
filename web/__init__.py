"""The web page that runs models in the browser: a static site, written by ``python -m glassformer web FOLDER``."""
