"""Files of any kind: reads have a limit, and a file is written completely or not at all."""
