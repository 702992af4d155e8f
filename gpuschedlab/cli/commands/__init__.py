"""Commands: a module each, found by being here; its first line is the help, `add(parser)` adds the arguments, its namesake runs it."""
