"""What is loaded or computed once and shared by all sessions, and who may compute when."""
