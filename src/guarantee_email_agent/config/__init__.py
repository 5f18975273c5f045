"""`config.yaml` and the environment, read once into one frozen `Config`; nothing else reads either."""
