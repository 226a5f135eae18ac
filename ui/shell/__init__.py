"""Parts around every page: frame, focus, address, navigation, sidebar, lessons, presenter."""
