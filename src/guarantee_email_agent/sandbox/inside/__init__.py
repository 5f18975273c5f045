"""What runs inside a sandbox, as its first process: it answers the requests that the server outside passes on.

Standard library only, and of ours from outside this folder `isolation.processes` alone: modules travel in as code.
"""
