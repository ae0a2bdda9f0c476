"""The configuration file: what may stand in it, where it lies, how it is read and edited.

paths   which file is the configuration
model   the options, their ranges and their meaning
load    strict reading; every mistake is named with its place and what is expected there
edit    changes that keep the operator's comments
hosts   a host's name made into the options to reach it with
api_key the engine's API key, from the environment or from a command
"""
