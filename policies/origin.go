package policies

import (
	"context"
	"strings"
)

// How an actor was authenticated, in the audit. For programs of users it is
// "token NAME".
const (
	ViaSession = "session"
	ViaAgent   = "agent"   // a report of a provider's agent
	ViaCommand = "command" // weir admin, directly on the database
	ViaSystem  = "system"  // a background task
)

// Origin is where a request came from.
type Origin struct {
	Address   string // of the client, as the server sees it
	UserAgent string // of the client, as it says
	Via       string // used when the actor has no Via; empty: ViaSystem
}

type originKey struct{}

// WithOrigin adds the origin of a request to its context, for the audit.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// UserAgent is how the client of the request of a context calls itself, in at most 300
// bytes of text.
func UserAgent(ctx context.Context) string {
	o, _ := ctx.Value(originKey{}).(Origin)
	return strings.ToValidUTF8(o.UserAgent[:min(len(o.UserAgent), 300)], "")
}

// ClientAddress is the address of the client of the request of a context; empty: there is
// none.
func ClientAddress(ctx context.Context) string {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o.Address
}

// clientOf is the client of the request of a context; empty: there is none.
func clientOf(ctx context.Context) string { return network(ClientAddress(ctx)) }
