package local

import (
	"fmt"
	"os"
	"strings"

	"weir/workspaces/runtime"
)

// names sets the host name of the sandbox, which resolves without DNS, and which other names
// it knows.
func (s *sandbox) names(host string, ownNetwork bool, allowed *runtime.Outgoing) {
	s.add("--hostname", host)
	file, _ := os.ReadFile("/etc/hosts")
	hosts, resolver := string(file), resolverSettings()
	if allowed != nil {
		hosts, resolver = knownNames(allowed)
	}
	s.data("/etc/hosts", fmt.Sprintf("%s\n127.0.1.1\t%s\n", strings.TrimRight(hosts, "\n"), host))
	if ownNetwork {
		s.data("/etc/resolv.conf", resolver)
	}
}
