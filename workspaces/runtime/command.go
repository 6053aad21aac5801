package runtime

import _ "embed"

// Command is an executable script that runs weir, the command line, where its image has no such
// program: it fetches that of the server named by WEIR_API.
//
//go:embed jupyter/weir_command.py
var Command string
