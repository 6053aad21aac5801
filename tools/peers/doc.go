// Command peers measures Weir beside what people would otherwise use: its proxy
// beside configurable-http-proxy, nginx and Caddy, and its pages beside the home page of
// JupyterHub. It is “make bench-peers”; docs/benchmarks.md describes what is
// measured.
//
// It starts all programs itself, in a temporary directory, and knows of Weir
// only what a browser and an administrator see: pages, the REST API and the
// command line.
package main
