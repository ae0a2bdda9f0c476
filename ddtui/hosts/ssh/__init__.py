"""Hosts reached by SSH, the way OpenSSH is configured to reach them."""

from ddtui.hosts.ssh.host import SshHost
from ddtui.hosts.ssh.known_hosts import accept_host_key
from ddtui.hosts.ssh.resolve import resolve
from ddtui.hosts.ssh.target import SshTarget

__all__ = ["SshHost", "SshTarget", "accept_host_key", "resolve"]
