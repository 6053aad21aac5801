package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"weir/models"
	"weir/policies"
)

func (a rest) passkeyOperations(s section) {
	register(a, s, route{http.MethodGet, "/me/passkeys", 200, "list-passkeys", models.Say("List your passkeys, oldest first")}, a.listPasskeys)
	register(a, s, route{http.MethodPost, "/me/passkeys/ceremony", 200, "begin-passkey",
		models.Say("Begin to create a passkey in a browser")}, a.beginPasskey, http.StatusTooManyRequests)
	register(a, s, route{http.MethodPost, "/me/passkeys", 201, "add-passkey",
		models.Say("Add a passkey that the browser created")}, a.addPasskey)
	register(a, s, route{http.MethodPut, "/me/passkeys/{id}", 200, "rename-passkey", models.Say("Rename a passkey")}, a.renamePasskey)
	register(a, s, route{http.MethodDelete, "/me/passkeys/{id}", 204, "delete-passkey",
		models.Say("Remove a passkey; ends all other sessions")}, a.deletePasskey)
}

// Passkey is a way to sign in without a password.
type Passkey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	CanSync    bool       `json:"backup_eligible" doc:"its authenticator can sync it between devices"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
}

func passkeyOf(p models.Passkey) Passkey {
	return Passkey{p.ID, p.Name, p.BackupEligible, utc(p.LastUsedAt), p.CreatedAt.UTC()}
}

func (a rest) listPasskeys(ctx context.Context, in *Paging) (*Response[List[Passkey]], error) {
	all, err := a.Accounts.Passkeys(ctx, actorOf(ctx), actorOf(ctx).User.ID)
	return listedAll(*in, func(p models.Passkey) int64 { return p.ID }, all, err, passkeyOf)
}

// PasskeyCeremony is what a browser needs to create a passkey or to sign in with one.
type PasskeyCeremony struct {
	Options   map[string]any `json:"options" doc:"public key options in the JSON of WebAuthn, for parseCreationOptionsFromJSON"`
	Ceremony  string         `json:"ceremony" doc:"to be returned with the result"`
	ExpiresAt time.Time      `json:"expires_at" doc:"until when the result is accepted"`
}

func ceremonyOf(c policies.PasskeyCeremony, err error) (p PasskeyCeremony, _ error) {
	if err == nil {
		p.Ceremony, p.ExpiresAt = c.Ceremony, c.ExpiresAt
		err = json.Unmarshal(c.Options, &p.Options)
	}
	return p, err
}

func (a rest) beginPasskey(ctx context.Context, in *Create[policies.Proof]) (*Response[PasskeyCeremony], error) {
	c, err := ceremonyOf(a.Accounts.BeginPasskey(ctx, actorOf(ctx), in.Body))
	return &Response[PasskeyCeremony]{c}, err
}

// PasskeyInput is the result of a ceremony in which a passkey was created.
type PasskeyInput struct {
	policies.NewPasskey
	Credential map[string]any `json:"credential" doc:"PublicKeyCredential that the browser created, as its toJSON method returns it"`
}

func (a rest) addPasskey(ctx context.Context, in *Create[PasskeyInput]) (*Created[Passkey], error) {
	var err error
	if in.Body.NewPasskey.Credential, err = json.Marshal(in.Body.Credential); err != nil {
		return nil, err
	}
	p, err := a.Accounts.AddPasskey(ctx, actorOf(ctx), in.Body.NewPasskey)
	return created(0, passkeyOf(p), err, "me/passkeys", p.ID)
}

func (a rest) renamePasskey(ctx context.Context, in *CreateIn[policies.PasskeyName]) (*Response[Passkey], error) {
	p, err := a.Accounts.RenamePasskey(ctx, actorOf(ctx), in.ID, in.Body)
	return &Response[Passkey]{passkeyOf(p)}, err
}

func (a rest) deletePasskey(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.continueSession(ctx, a.Accounts.DeletePasskey(ctx, actorOf(ctx), in.ID))
}
