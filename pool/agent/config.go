package agent

import (
	"errors"
	"log/slog"
	"time"

	"weir/pool/providers"
)

// Config configures an agent.
type Config struct {
	Dir     string // its state directory
	Server  string // see ParseServer; empty: as enrolled
	Code    string // to enroll with; empty or the redeemed one if enrolled
	Name    string // host name
	Digest  string // of the machine's identity; see providers.MachineDigest
	Machine providers.Machine
	Cluster Cluster
	Clock   func() time.Time // for certificates
	Log     *slog.Logger
}

// Cluster configures an agent that enrolls with the token of its pod instead of a
// code. The zero Cluster is none.
type Cluster struct {
	TokenFile string // of the pod's service account; it is rotated
	Authority string // file with the certificate of the portal's authority
}

func (c Cluster) enrols() bool { return c.TokenFile != "" }

// ErrNotEnrolled means that the agent is not enrolled and has no code.
var ErrNotEnrolled = errors.New("the agent is not enrolled: give it a code and the portal's address")
