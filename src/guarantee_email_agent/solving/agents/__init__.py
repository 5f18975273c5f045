"""Who works on a task: a language model, a script, or another program."""
