"""The servers of a space: their files, accounts and certificates; and reaching them."""
