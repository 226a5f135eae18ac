"""Sounds: WAV files, the log-mel spectrogram that Whisper reads, and positions in time as tokens."""
