"""Messages as text; the words of the frame are ``core.frame``'s, and no rule is here."""
