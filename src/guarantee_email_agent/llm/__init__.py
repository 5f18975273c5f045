"""The port to a language model, the prompts, and the interpreter that answers them offline."""
