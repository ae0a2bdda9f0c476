"""The built-in simulated GPU host: `ddtui connect demo`, and a simulated SGLang for tests.

Everything here is made up and says so (`Host.simulated`, version `0.5.23+simulated`). The formats
are not: what it prints is what nvidia-smi, systemd, journald and SGLang 0.5.23 print. Import the
parts from their modules:

    scenarios       names and descriptions of what the host can be doing
    host            DemoHost: SSH server, simulated machine and the SshHost that connects to it
    machine         the simulated machine behind the server
    engine          the simulated SGLang; `python -m ddtui.demo.engine_process` runs it as a program
"""
