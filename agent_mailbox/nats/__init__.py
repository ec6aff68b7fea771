"""The order of a space kept by NATS JetStream, over plain sockets: one-shot commands must start fast."""
