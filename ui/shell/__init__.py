"""Around every page: its frame, the focus, the address, navigation, sidebar, lessons, presenter."""
