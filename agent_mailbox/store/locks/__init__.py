"""The locks of files, of logs and of a doorbell: who may write."""
