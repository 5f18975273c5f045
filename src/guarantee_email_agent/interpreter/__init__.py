"""Answers the agent's requests without a language model."""
