"""The files that people edit, from bytes on disk to frozen dataclasses: reading, YAML, shapes, JSON schemas."""
