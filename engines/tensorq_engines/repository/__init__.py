"""The model repository: a folder of models, each with its settings."""
