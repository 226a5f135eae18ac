"""The sections of the Glossary page."""
