"""What happened: threads, mails, runs, tool uses."""
