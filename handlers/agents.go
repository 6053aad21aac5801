package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/authority"
	"weir/pool/providers"
)

// agentsAddressPath serves the address of the agents' listener to agents that only have
// that of the portal.
const agentsAddressPath = apiPrefix + "/agents/address"

// AgentsAddress is where agents find their listener.
type AgentsAddress struct {
	URL string `json:"url"`
}

// showAgentsAddress is public: the listener authenticates itself with its certificate.
func (a *App) showAgentsAddress(c echo.Context) error {
	if a.AgentsURL == nil {
		return models.NotFound("agent endpoint")
	}
	host := c.Request().Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return c.JSON(http.StatusOK, AgentsAddress{URL: a.AgentsURL(host)})
}

// Limits of a request body in bytes: of an authenticated agent, with an hour of
// measurements, and of others.
const (
	maxHeartbeatBody = 8 << 20
	maxAgentBody     = 256 << 10
)

// maxConcurrentEnrollments limits concurrent redemptions, and concurrent joins: these requests are not
// authenticated.
const maxConcurrentEnrollments = 2

// maxWaitingEnrollments limits the redemptions, and the joins, that wait. Others are told
// to try again after enrollmentRetry.
const (
	maxWaitingEnrollments = 1000
	enrollmentRetry       = 10 * time.Second
)

// invalidTokenDelay is how long a token that the cluster rejects occupies its slot, which
// limits the requests to the cluster's API server.
const invalidTokenDelay = 250 * time.Millisecond

// agents serves the agents of machines on their own listener.
type agents struct {
	*providers.Enrollment
	log         *slog.Logger
	redemptions semaphore // of redemptions
	joins       semaphore
}

// semaphore bounds how many do a thing at once, and how many wait for it.
type semaphore struct{ slots, waiting chan struct{} }

func newSemaphore(slots, waiting int) semaphore {
	return semaphore{make(chan struct{}, slots), make(chan struct{}, waiting)}
}

// acquire waits for a slot, unless too many wait. The caller returns it afterwards.
func (t semaphore) acquire(ctx context.Context) error {
	select {
	case t.waiting <- struct{}{}:
	default:
		return models.RateLimited(enrollmentRetry, "Too many agents enroll at the same time. Try again in a moment.")
	}
	defer func() { <-t.waiting }()
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t semaphore) release() { <-t.slots }

// NewAgents is the handler of the agents' listener: enrollment for agents with a code
// or a service account of the cluster, heartbeats and renewals for agents with a
// certificate.
func NewAgents(e *providers.Enrollment, log *slog.Logger) http.Handler {
	a := agents{e, log, newSemaphore(maxConcurrentEnrollments, maxWaitingEnrollments),
		newSemaphore(maxConcurrentEnrollments, maxWaitingEnrollments)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/redeem", serveAgent(a, maxAgentBody, allowAll, a.redeem))
	mux.HandleFunc("POST /v1/join", serveAgent(a, maxAgentBody, allowAll, a.join))
	mux.HandleFunc("POST /v1/heartbeat", serveAgent(a, maxHeartbeatBody, a.authenticate, a.heartbeat))
	mux.HandleFunc("POST /v1/renew", serveAgent(a, maxAgentBody, a.authenticate, a.renew))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.refuse(w, r, models.NotFound("page")) })
	return mux
}

// allowAll admits unauthenticated requests.
func allowAll(*http.Request) error { return nil }

// authenticate admits only agents with a certificate of a provider in the pool.
func (a agents) authenticate(r *http.Request) error {
	who, err := peerOf(r)
	if err != nil {
		return err
	}
	return a.Authenticate(r.Context(), who)
}

func (a agents) redeem(r *http.Request, in providers.Redemption) (providers.Enrolled, error) {
	if err := a.redemptions.acquire(r.Context()); err != nil {
		return providers.Enrolled{}, err
	}
	defer a.redemptions.release()
	return a.Redeem(r.Context(), in, addressOf(r))
}

func (a agents) join(r *http.Request, in providers.Joining) (providers.Enrolled, error) {
	if err := a.joins.acquire(r.Context()); err != nil {
		return providers.Enrolled{}, err
	}
	defer a.joins.release()
	out, err := a.Join(r.Context(), in, addressOf(r))
	if models.KindOf(err) == models.KindUnauthenticated {
		<-time.After(invalidTokenDelay) // also after the client has disconnected
	}
	return out, err
}

func (a agents) heartbeat(r *http.Request, in providers.Heartbeat) (providers.Orders, error) {
	who, err := peerOf(r)
	if err != nil {
		return providers.Orders{}, err
	}
	return a.Heartbeat(r.Context(), who, in, addressOf(r))
}

func (a agents) renew(r *http.Request, in providers.Renewal) (providers.Renewed, error) {
	who, err := peerOf(r)
	if err != nil {
		return providers.Renewed{}, err
	}
	return a.Renew(r.Context(), who, in, addressOf(r))
}

// peerOf reads the certificate with which a request came. TLS has checked
// that it is the authority's, and that its holder has the key.
func peerOf(r *http.Request) (authority.Peer, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return authority.Peer{}, &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("An agent certificate is required.")}
	}
	return authority.PeerOf(r.TLS.PeerCertificates[0]), nil
}

// addressOf is from where a request came, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// serveAgent authorizes a request, reads a JSON body of up to limit bytes, calls do and
// writes the response.
func serveAgent[I, O any](a agents, limit int64, may func(*http.Request) error, do func(*http.Request, I) (O, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := http.MaxBytesReader(w, r.Body, limit)
		if err := may(r); err != nil {
			_, _ = io.Copy(io.Discard, body) // clients read the response only after sending
			a.refuse(w, r, err)
			return
		}
		var in I
		if err := json.NewDecoder(body).Decode(&in); err != nil {
			a.refuse(w, r, invalidBody(err))
			return
		}
		from := policies.Origin{Address: addressOf(r), Via: policies.ViaAgent}
		out, err := do(r.WithContext(policies.WithOrigin(r.Context(), from)), in)
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		a.logged(r, writeJSON(w, out))
	}
}

func invalidBody(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return &models.Error{Kind: models.KindInvalid, Message: models.Say("The request exceeds the maximum size of %s.",
			fmt.Sprintf("%d KiB", large.Limit>>10)), Err: err}
	}
	if told := (*models.Error)(nil); errors.As(err, &told) {
		return told
	}
	return &models.Error{Kind: models.KindInvalid, Message: models.Say("The request is malformed."), Err: err}
}

// refuse answers with a problem, as the REST API does.
func (a agents) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	level := slog.LevelDebug
	if p.Status >= 500 && r.Context().Err() == nil {
		level = slog.LevelError
	}
	a.log.Log(r.Context(), level, "agent refused", "path", r.URL.Path, "address", r.RemoteAddr, "status", p.Status, "err", err)
	a.logged(r, p.write(w))
}

func (a agents) logged(r *http.Request, err error) {
	if err != nil {
		a.log.DebugContext(r.Context(), "answer to an agent not written", "err", err)
	}
}
