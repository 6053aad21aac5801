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
	register(a, s, route{http.MethodPost, "/pool/authorizations", 201, "authorize-provider", "Make a code with which the machine that has a GPU code can enrol its agent, once; for platform administrators"}, a.authorizeProvider)
	register(a, s, route{http.MethodGet, "/pool/authorizations", 200, "list-authorizations", "List the codes that were made and neither used nor have expired, without the codes; for platform administrators"}, a.listAuthorizations)
	register(a, s, route{http.MethodGet, "/pool/providers", 200, "list-providers", "List the machines that lend GPUs"}, a.listProviders)
	register(a, s, route{http.MethodGet, "/pool/providers/{id}", 200, "get-provider", "Show a provider, its terms and devices"}, a.getProvider)
	register(a, s, route{http.MethodPut, "/pool/providers/{id}", 200, "update-provider", "Replace a provider's name and terms; for its owner and platform administrators"}, a.updateProvider)
	register(a, s, route{http.MethodDelete, "/pool/providers/{id}", 204, "remove-provider", "Take a provider on which nobody holds a share out of the pool, and shut its agent out"}, a.removeProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/drain", 200, "drain-provider", "Lend nothing new; what is in use stays in use"}, a.drainProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/resume", 200, "resume-provider", "End a drain, and take a recall back"}, a.resumeProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/recall", 200, "recall-provider", "Call the GPUs back: the holders are told, and their shares end after the notification"}, a.recallProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/accept", 200, "accept-provider", "Authorise the GPUs that a live agent reports now; for platform administrators"}, a.acceptProvider)
	register(a, s, route{http.MethodPost, "/pool/providers/{id}/revoke", 200, "revoke-provider", "Shut a provider's agent out; for platform administrators"}, a.revokeProvider)
}

// Provider is a machine that lends GPUs.
type Provider struct {
	ID           int64        `json:"id"`
	Name         string       `json:"name"`
	State        string       `json:"state" enum:"pending,online,draining,offline,lost,recalled"`
	Reason       string       `json:"reason,omitempty" doc:"of the state"`
	SeenAt       time.Time    `json:"seen_at"`
	OwnerID      *int64       `json:"owner_id,omitempty"`
	Owner        string       `json:"owner,omitempty"`
	Agent        bool         `json:"agent" doc:"an enrolled agent speaks for it, not the portal itself"`
	Since        *time.Time   `json:"agent_since,omitempty" doc:"only where one provider is asked for"`
	Address      string       `json:"address,omitempty" doc:"from which its agent speaks; for who may manage it"`
	GPUCode      string       `json:"gpu_code,omitempty" doc:"that was authorised; for who may manage it"`
	ReportedCode string       `json:"reported_code,omitempty" doc:"of changed GPUs that wait for an authorisation; for who may manage it"`
	Draining     bool         `json:"draining"`
	RecallAt     *time.Time   `json:"recall_at,omitempty" doc:"its shares end then"`
	RecallReason string       `json:"recall_reason,omitempty"`
	Terms        models.Terms `json:"terms" doc:"who may not manage it reads only such project ids as are known to them"`
	Chosen       bool         `json:"chosen_projects" doc:"it lends to chosen projects only, whether you may know which or not"`
	Lends        bool         `json:"lends" doc:"its hours are open"`
	Until        *time.Time   `json:"until,omitempty" doc:"when that changes"`
	Holders      int          `json:"holders" doc:"people who hold shares there"`
	MayManage    bool         `json:"may_manage"`
	Devices      []Device     `json:"devices"`
}

func providerOf(p pool.ProviderView) Provider {
	return Provider{ID: p.ID, Name: p.Name, State: p.State, Reason: p.Reason.String(), SeenAt: p.SeenAt.UTC(), OwnerID: p.OwnerID, Owner: p.OwnerName,
		Agent: p.Agent, Since: utc(p.Since), Address: p.Address, GPUCode: p.GPUCode, ReportedCode: p.ReportedCode, Draining: p.Draining,
		RecallAt: utc(p.RecallAt), RecallReason: p.RecallReason, Terms: p.Terms, Chosen: p.Chosen, Lends: p.Lends, Until: utc(p.Until), Holders: p.Holders,
		MayManage: p.Manage, Devices: shown(p.Devices, deviceOf)}
}

// Authorization lets one machine with certain GPUs enrol its agent, once.
type Authorization struct {
	ID        int64     `json:"id"`
	GPUCode   string    `json:"gpu_code"`
	Name      string    `json:"name,omitempty" doc:"what the provider shall be called; absent: as the machine calls itself"`
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
	Code string `json:"code" doc:"for weir agent --code; it is never shown again"`
}

func (a rest) authorizeProvider(ctx context.Context, in *Create[providers.AuthorizeInput]) (*Response[NewAuthorization], error) {
	code, made, err := a.Enrolment.Authorize(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	return &Response[NewAuthorization]{NewAuthorization{authorizationOf(made), code}}, nil
}

func (a rest) listAuthorizations(ctx context.Context, in *Paging) (*Response[List[Authorization]], error) {
	all, err := a.Enrolment.Authorizations(ctx, actorOf(ctx))
	return listedWhole(*in, func(m models.Authorization) int64 { return m.ID }, all, err, authorizationOf)
}

func (a rest) listProviders(ctx context.Context, in *Paging) (*Response[List[Provider]], error) {
	v, err := a.Pool.View(ctx, actorOf(ctx))
	return listedWhole(*in, func(p pool.ProviderView) int64 { return p.ID }, v.Providers, err, providerOf)
}

func (a rest) getProvider(ctx context.Context, in *ByID) (*Found[Provider], error) {
	p, err := a.Pool.Provider(ctx, actorOf(ctx), in.ID)
	return found(p.Version, providerOf(p), err)
}

func (a rest) updateProvider(ctx context.Context, in *Update[providers.ProviderInput]) (*Found[Provider], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	if _, err := a.Providers.Update(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, termsRefusal(err)
	}
	a.Wake()
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

// Versioned names one resource and, with If-Match, its version.
type Versioned struct {
	ByID
	IfMatch
}

// changedProvider does to a provider what needs nothing but its version.
func (a rest) changedProvider(ctx context.Context, in *Versioned, do func(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error)) error {
	version, err := in.version()
	if err != nil {
		return err
	}
	if _, err := do(ctx, actorOf(ctx), in.ID, version); err != nil {
		return err
	}
	a.Wake()
	return nil
}

func (a rest) drainProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	if err := a.changedProvider(ctx, in, a.Providers.Drain); err != nil {
		return nil, err
	}
	return a.getProvider(ctx, &in.ByID)
}

func (a rest) resumeProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	if err := a.changedProvider(ctx, in, a.Providers.Resume); err != nil {
		return nil, err
	}
	return a.getProvider(ctx, &in.ByID)
}

func (a rest) acceptProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	if err := a.changedProvider(ctx, in, a.Enrolment.Accept); err != nil {
		return nil, err
	}
	return a.getProvider(ctx, &in.ByID)
}

func (a rest) revokeProvider(ctx context.Context, in *Versioned) (*Found[Provider], error) {
	if err := a.changedProvider(ctx, in, a.Enrolment.Revoke); err != nil {
		return nil, err
	}
	return a.getProvider(ctx, &in.ByID)
}

func (a rest) removeProvider(ctx context.Context, in *Versioned) (*Nothing, error) {
	return nothing(a.changedProvider(ctx, in, a.Providers.Remove))
}

func (a rest) recallProvider(ctx context.Context, in *Update[providers.RecallInput]) (*Found[Provider], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	if _, err := a.Providers.Recall(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	a.Wake()
	return a.getProvider(ctx, &in.ByID)
}
