package handlers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool"
	"weir/pool/providers"
)

func (a rest) providersOperations(s section) {
	register(a, s, route{http.MethodPost, "/pool/authorizations", 201, "authorize-provider",
		models.Say("Create a single-use enrollment code for the machine with a GPU code; requires platform administrator")}, a.authorizeProvider)
	register(a, s, route{http.MethodGet, "/pool/authorizations", 200, "list-authorizations",
		models.Say("List pending enrollment codes without their secrets; requires platform administrator")}, a.listAuthorizations)
	register(a, s, route{http.MethodGet, "/pool/providers", 200, "list-providers", models.Say("List providers")}, a.listProviders)
	register(a, s, route{http.MethodGet, "/pool/providers/{id}", 200, "get-provider", models.Say("Get a provider with its terms and devices")},
		a.getProvider)
	register(a, s, route{http.MethodPut, "/pool/providers/{id}", 200, "update-provider",
		models.Say("Update a provider's name and terms; requires its owner or platform administrator")}, a.updateProvider)
	register(a, s, route{http.MethodDelete, "/pool/providers/{id}", 204, "remove-provider",
		models.Say("Remove an unused provider from the pool and revoke its agent")}, a.removeProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/drain", 200, "drain-provider",
		models.Say("Drain a provider; existing shares are kept")}, a.drainProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/resume", 200, "resume-provider",
		models.Say("Resume a drained provider, or cancel a recall")}, a.resumeProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/recall", 200, "recall-provider",
		models.Say("Recall a provider's GPUs; users are notified and their shares end after the grace period")}, a.recallProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/accept", 200, "accept-provider",
		models.Say("Authorize the GPUs currently reported by a live agent; requires platform administrator")}, a.acceptProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/revoke", 200, "revoke-provider",
		models.Say("Revoke a provider's agent; requires platform administrator")}, a.revokeProvider)
}

// Provider is a machine that lends GPUs.
type Provider struct {
	ID           int64        `json:"id"`
	Name         string       `json:"name"`
	State        string       `json:"state" enum:"pending,online,draining,offline,lost,recalled"`
	Reason       string       `json:"reason,omitempty" doc:"reason for the state"`
	SeenAt       time.Time    `json:"seen_at"`
	OwnerID      *int64       `json:"owner_id,omitempty"`
	Owner        string       `json:"owner,omitempty"`
	Agent        bool         `json:"agent" doc:"managed by an enrolled agent"`
	Since        *time.Time   `json:"agent_since,omitempty" doc:"connection time of the agent; only in single-provider responses"`
	Address      string       `json:"address,omitempty" doc:"IP address of the agent; visible to provider managers"`
	GPUCode      string       `json:"gpu_code,omitempty" doc:"authorized GPU code; visible to provider managers"`
	ReportedCode string       `json:"reported_code,omitempty" doc:"reported GPU code pending authorization; visible to provider managers"`
	Draining     bool         `json:"draining"`
	RecallAt     *time.Time   `json:"recall_at,omitempty" doc:"end of the shares due to the recall"`
	RecallReason string       `json:"recall_reason,omitempty"`
	Terms        models.Terms `json:"terms" doc:"terms; without permission to manage the provider, includes only projects visible to you"`
	Chosen       bool         `json:"chosen_projects" doc:"restricted to selected projects"`
	Lends        bool         `json:"lends" doc:"available under the hours of the terms"`
	Until        *time.Time   `json:"until,omitempty" doc:"time of the next availability change"`
	Users        int          `json:"users" doc:"number of users with shares"`
	MayManage    bool         `json:"may_manage"`
	Devices      []Device     `json:"devices"`
	// Latencies are those that were measured in the last ten minutes.
	Latencies []ProviderLatency `json:"latencies,omitempty" doc:"measured latencies to client zones; only in single-provider responses"`
}

// ProviderLatency is the latency between a provider and a client zone.
type ProviderLatency struct {
	Zone         string    `json:"zone" doc:"client zone"`
	Milliseconds float64   `json:"milliseconds" doc:"time in which a connection is opened"`
	MeasuredAt   time.Time `json:"measured_at"`
}

func providerLatencyOf(l models.ProviderLatency) ProviderLatency {
	return ProviderLatency{l.Zone, float64(l.Micros) / 1000, l.MeasuredAt.UTC()}
}

func providerOf(p pool.ProviderView) Provider {
	return Provider{ID: p.ID, Name: p.Name, State: p.State, Reason: p.Reason.String(), SeenAt: p.SeenAt.UTC(), OwnerID: p.OwnerID,
		Owner: p.OwnerName,
		Agent: p.Agent, Since: utc(p.Since), Address: p.Address, GPUCode: p.GPUCode, ReportedCode: p.ReportedCode, Draining: p.Draining,
		RecallAt: utc(p.RecallAt), RecallReason: p.RecallReason, Terms: p.Terms, Chosen: p.Chosen, Lends: p.Lends, Until: utc(p.Until),
		Users:     p.Users,
		MayManage: p.Manage, Devices: models.Map(p.Devices, deviceOf), Latencies: models.Map(p.Latencies, providerLatencyOf)}
}

// Authorization lets one machine with certain GPUs enrol its agent, once.
type Authorization struct {
	ID        int64     `json:"id"`
	GPUCode   string    `json:"gpu_code"`
	Name      string    `json:"name,omitempty" doc:"provider name; absent for the machine's host name"`
	OwnerID   int64     `json:"owner_id"`
	ExpiresAt time.Time `json:"expires_at"`
	CreatedAt time.Time `json:"created_at"`
}

func authorizationOf(a models.Authorization) Authorization {
	return Authorization{a.ID, a.GPUCode, a.Name, a.OwnerID, a.ExpiresAt.UTC(), a.CreatedAt.UTC()}
}

// NewAuthorization is an authorization with its code.
type NewAuthorization struct {
	Authorization
	Code string `json:"code" doc:"enrollment code for weir agent --code; returned only once"`
}

func (a rest) authorizeProvider(ctx context.Context, in *Create[providers.AuthorizeInput]) (*Response[NewAuthorization], error) {
	code, made, err := a.Enrollment.Authorize(ctx, actorOf(ctx), in.Body)
	return &Response[NewAuthorization]{NewAuthorization{authorizationOf(made), code}}, err
}

func (a rest) listAuthorizations(ctx context.Context, in *Paging) (*Response[List[Authorization]], error) {
	all, err := a.Enrollment.Authorizations(ctx, actorOf(ctx))
	return listedAll(*in, func(m models.Authorization) int64 { return m.ID }, all, err, authorizationOf)
}

func (a rest) listProviders(ctx context.Context, in *Paging) (*Response[List[Provider]], error) {
	v, err := a.Pool.View(ctx, actorOf(ctx))
	return listedAll(*in, func(p pool.ProviderView) int64 { return p.ID }, v.Providers, err, providerOf)
}

func (a rest) getProvider(ctx context.Context, in *ByID) (*Found[Provider], error) {
	p, err := a.Pool.Provider(ctx, actorOf(ctx), in.ID)
	return found(p.Version, providerOf(p), err)
}

func (a rest) updateProvider(ctx context.Context, in *Update[providers.ProviderInput]) (*Found[Provider], error) {
	in.Body.Version = in.version
	if _, err := a.Providers.Update(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, termsRefusal(err)
	}
	return a.getProvider(ctx, &in.ByID)
}

// termsRefusal names the refused fields of terms by their place in the body.
func termsRefusal(err error) error {
	if models.KindOf(err) != models.KindInvalid {
		return err
	}
	p := problemOf(err)
	for i, f := range p.Errors {
		if name, _, _ := strings.Cut(f.Field, "["); name != "name" && name != "owner_id" {
			p.Errors[i].Field = "terms." + f.Field
		}
	}
	return p
}

// changeProvider is a change that needs only the provider's version.
type changeProvider func(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error)

func (a rest) changedProvider(ctx context.Context, in *Versioned, do changeProvider) (*Found[Provider], error) {
	if _, err := do(ctx, actorOf(ctx), in.ID, in.version); err != nil {
		return nil, err
	}
	return a.getProvider(ctx, &in.ByID)
}

func (a rest) drainProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	return a.changedProvider(ctx, in, a.Providers.Drain)
}

func (a rest) resumeProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	return a.changedProvider(ctx, in, a.Providers.Resume)
}

func (a rest) acceptProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	return a.changedProvider(ctx, in, a.Enrollment.Accept)
}

func (a rest) revokeProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	return a.changedProvider(ctx, in, a.Enrollment.Revoke)
}

func (a rest) removeProvider(ctx context.Context, in *Versioned) (*Nothing, error) {
	_, err := a.Providers.Remove(ctx, actorOf(ctx), in.ID, in.version)
	return nil, err
}

func (a rest) recallProvider(ctx context.Context, in *Update[providers.RecallInput]) (*Found[Provider], error) {
	in.Body.Version = in.version
	if _, err := a.Providers.Recall(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getProvider(ctx, &in.ByID)
}
