package main

// Names of candidates that ratios refer to.
const (
	nameDirect = "notebook: direct"
	namePort   = "notebook: direct, TCP"
	nameProxy  = "notebook: configurable-http-proxy"
	nameCookie = "notebook: Weir, cookie"
	nameToken  = "notebook: Weir, token"
	nameNginx  = "notebook: nginx"
	nameCaddy  = "notebook: Caddy"
	nameHub    = "JupyterHub: home"
	nameStart  = "start of Jupyter: Weir"
	nameHubRun = "start of Jupyter: JupyterHub"
	pagePrefix = "Weir: " // of the pages

	suffixAlone = ", one connection"
	suffixFirst = ", first read" // after a change, on one connection
)
