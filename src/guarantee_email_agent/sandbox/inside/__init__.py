"""What runs inside a sandbox, as its first process: it answers the requests that the server outside passes on.

Standard library only, and nothing of ours from outside this folder: the modules travel into the sandbox as code.
"""
