package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// stubSocket is where Weir expects the notebook of a sandbox to listen.
const stubSocket = "/run/weir/jupyter.sock"

// kernelsPath is the request that is measured: JupyterLab repeats it all day.
const kernelsPath = "/api/kernels"

// serveStub is the notebook in all measurements: it answers at once, with a list
// of kernels of the usual size. It listens on a socket, the address of which is a path, or on a
// port, for proxies that cannot keep connections to a socket open.
func serveStub(address string) error {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	kernels := kernelList()
	http.HandleFunc("GET "+kernelsPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(kernels)
	})
	http.HandleFunc("GET /api/status", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// kernelList is a listing of six kernels, about 1 KiB.
func kernelList() []byte {
	var kernels []string
	for i := range 6 {
		kernels = append(kernels, fmt.Sprintf(`{"id": "5d9b3f0c-4b1e-4f6a-9c55-0f6f3b1d27%02d", "name": "python3", `+
			`"last_activity": "2026-01-02T03:04:%02d.123456Z", "execution_state": "idle", "connections": 1}`, i, i))
	}
	return []byte("[" + strings.Join(kernels, ", ") + "]")
}

// copyStub copies this program to where a sandbox sees nothing else.
func copyStub(dir string) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "stub", "notebook")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, program, 0o755)
}
