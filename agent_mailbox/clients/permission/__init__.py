"""The hooks before a tool: may this session use it, and may it run our own commands?"""
