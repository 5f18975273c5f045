"""The daemon: start-up, the loop over the inbox, the work on one mail, `check` and the demo."""
