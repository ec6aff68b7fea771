"""The hooks of a client: what each event does, and the mail that it shows."""
