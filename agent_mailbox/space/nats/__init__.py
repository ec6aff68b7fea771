"""NATS JetStream as a shared order."""
