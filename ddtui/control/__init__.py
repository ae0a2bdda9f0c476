"""What changes an engine on its host, and what must be learned of it first.

programs     the scripts that run on the host for it
server_help  the flags that the installed server has, kept by its version
"""
