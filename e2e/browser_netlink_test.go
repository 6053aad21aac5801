package e2e

import (
	"fmt"
	"os"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// browserVariable names the browser that a child of the tests becomes.
const browserVariable = "WEIR_E2E_BROWSER"

// becomeBrowser replaces this process by a browser that cannot hear of network interfaces.
// Each pod and each workspace brings one, and Chromium answers that by dropping the requests
// that it has open (ERR_NETWORK_CHANGED). It returns only if this process is no such child.
func becomeBrowser() {
	path := os.Getenv(browserVariable)
	if path == "" {
		return
	}
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionErrno, NamesWithCondtions: []seccomp.NameWithConditions{{
			Name: "socket", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.AF_NETLINK}},
		}}}},
	}})
	if err == nil {
		err = unix.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, path+":", err)
	os.Exit(1)
}
