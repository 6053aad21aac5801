package handlers

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/pool/authority"
)

// agentsAddressPath is where an agent that knows the portal asks for the
// listener that agents speak to.
const agentsAddressPath = apiPrefix + "/agents/address"

// AgentsAddress is where agents find their listener.
type AgentsAddress struct {
	URL string `json:"url"`
}

// agentsAddress tells it to everybody: whoever answers there has to prove who
// it is.
func (a *App) agentsAddress(c echo.Context) error {
	if a.AgentsURL == nil {
		return models.NotFound("listener for agents")
	}
	host := c.Request().Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return c.JSON(http.StatusOK, AgentsAddress{URL: a.AgentsURL(host)})
}

// maxAgentBody is the most that an agent may send at once, in bytes.
const maxAgentBody = 8 << 20

// agents serves the agents of machines on their own listener.
type agents struct {
	*pool.Enrolment
	log *slog.Logger
}

// NewAgents is what the agents' listener serves: enrolment for who has a code,
// beats and renewal for who has a certificate.
func NewAgents(e *pool.Enrolment, log *slog.Logger) http.Handler {
	a := agents{e, log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/redeem", serveAgent(a, a.redeem))
	mux.HandleFunc("POST /v1/beat", serveAgent(a, a.beat))
	mux.HandleFunc("POST /v1/renew", serveAgent(a, a.renew))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { a.refuse(w, r, models.NotFound("page")) })
	return mux
}

func (a agents) redeem(r *http.Request, in pool.Redemption) (pool.Enrolled, error) {
	return a.Redeem(r.Context(), in, addressOf(r))
}

func (a agents) beat(r *http.Request, in pool.Beat) (pool.Orders, error) {
	who, err := holderOf(r)
	if err != nil {
		return pool.Orders{}, err
	}
	return a.Beat(r.Context(), who, in, addressOf(r))
}

func (a agents) renew(r *http.Request, in pool.Renewal) (pool.Renewed, error) {
	who, err := holderOf(r)
	if err != nil {
		return pool.Renewed{}, err
	}
	certificate, err := a.Renew(r.Context(), who, in.CSR)
	return pool.Renewed{Certificate: certificate}, err
}

// holderOf reads the certificate with which a request came. TLS has checked
// that it is the authority's, and that its holder has the key.
func holderOf(r *http.Request) (authority.Holder, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return authority.Holder{}, &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("An agent's certificate is needed here.")}
	}
	return authority.HolderOf(r.TLS.PeerCertificates[0]), nil
}

// addressOf is from where a request came, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// serveAgent reads a JSON body, does the work and writes the answer.
func serveAgent[I, O any](a agents, do func(*http.Request, I) (O, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in I
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAgentBody)).Decode(&in)
		if err != nil {
			a.refuse(w, r, unreadable(err))
			return
		}
		out, err := do(r, in)
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		a.write(w, r, http.StatusOK, "application/json", out)
	}
}

func unreadable(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return &models.Error{Kind: models.KindInvalid, Message: models.Say("The request is larger than %s.", "8 MiB"), Err: err}
	}
	return &models.Error{Kind: models.KindInvalid, Message: models.Say("The request could not be understood."), Err: err}
}

// refuse answers with a problem, as the REST API does.
func (a agents) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		p.Status, p.Title = http.StatusRequestEntityTooLarge, http.StatusText(http.StatusRequestEntityTooLarge)
	}
	level := slog.LevelDebug
	if p.Status >= 500 && r.Context().Err() == nil {
		level = slog.LevelError
	}
	a.log.Log(r.Context(), level, "agent refused", "path", r.URL.Path, "address", r.RemoteAddr, "status", p.Status, "err", err)
	a.write(w, r, p.Status, p.ContentType(""), p)
}

func (a agents) write(w http.ResponseWriter, r *http.Request, status int, kind string, v any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.log.DebugContext(r.Context(), "answer to an agent not written", "err", err)
	}
}
