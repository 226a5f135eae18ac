"""The web page that runs models in the browser: a static site that ``glassformer web`` writes."""
