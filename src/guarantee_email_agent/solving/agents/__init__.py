"""Who works on a task: a language model, a script, another program, or a person."""
