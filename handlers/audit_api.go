package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
)

func (a rest) auditOperations(s section) {
	register(a, s, route{http.MethodGet, "/audit", 200, "list-audit", "List changes, newest first; for platform administrators"}, a.listAudit)
	register(a, s, route{http.MethodGet, "/audit.csv", 200, "download-audit", "Download changes as CSV, newest first; for platform administrators"}, a.downloadAudit)
	describeDownload(s, "/audit.csv")
}

// AuditEntry is one change that somebody made.
type AuditEntry struct {
	ID        int64     `json:"id" doc:"place in the chain, from 1"`
	At        time.Time `json:"at"`
	ActorID   *int64    `json:"actor_id,omitempty" doc:"absent: Weir itself"`
	Actor     string    `json:"actor"`
	Address   string    `json:"address,omitempty" doc:"from which the change came"`
	Via       string    `json:"via,omitempty" doc:"what the actor spoke by: session, token NAME, agent, command or system"`
	Action    string    `json:"action"`
	Object    string    `json:"object" doc:"kind of what was changed"`
	ObjectID  int64     `json:"object_id"`
	ProjectID *int64    `json:"project_id,omitempty"`
	Before    any       `json:"before,omitempty" doc:"as it was; absent when it was created"`
	After     any       `json:"after,omitempty" doc:"as it is; absent when it was removed"`
	Previous  string    `json:"previous,omitempty" doc:"hash of the entry before; absent in the first"`
	SHA256    string    `json:"sha256" doc:"SHA-256 over all fields"`
}

func auditEntryOf(e models.AuditEntry) AuditEntry {
	return AuditEntry{ID: e.ID, At: e.At.UTC(), ActorID: e.ActorID, Actor: e.Actor, Address: e.Address, Via: e.Via, Action: e.Action,
		Object: e.Object, ObjectID: e.ObjectID, ProjectID: e.ProjectID, Before: recorded(e.Before), After: recorded(e.After),
		Previous: e.Previous, SHA256: e.Hash}
}

// recorded is JSON as the audit keeps it.
func recorded(text string) any {
	if text == "" || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// AuditFilter chooses changes.
type AuditFilter struct {
	Actor     string    `query:"actor" maxLength:"254" doc:"who, as the entries name them: an e-mail address, or a part of Weir"`
	Action    string    `query:"action" maxLength:"100" doc:"such as create, update or delete"`
	Object    string    `query:"object" maxLength:"100" doc:"kind of what was changed, such as project"`
	ObjectID  int64     `query:"object_id" minimum:"1"`
	ProjectID int64     `query:"project_id" minimum:"1" doc:"of what belongs to this project alone"`
	From      time.Time `query:"from" doc:"the first moment"`
	Until     time.Time `query:"until" doc:"the first moment after"`
}

func (f AuditFilter) model() models.AuditFilter { return models.AuditFilter(f) }

// AuditQuery asks for one page of changes.
type AuditQuery struct {
	Paging
	AuditFilter
}

func (a rest) listAudit(ctx context.Context, in *AuditQuery) (*Response[List[AuditEntry]], error) {
	return listed(in.Paging, func(e models.AuditEntry) int64 { return e.ID }, func(p models.Page) ([]models.AuditEntry, error) {
		return a.Accounts.AuditEntries(ctx, actorOf(ctx), in.model(), p)
	}, auditEntryOf)
}

var auditColumns = []string{"id", "at", "actor_id", "actor", "address", "via", "action", "object", "object_id", "project_id",
	"before", "after", "previous", "sha256"}

func (a rest) downloadAudit(ctx context.Context, in *AuditFilter) (*huma.StreamResponse, error) {
	return downloaded(a, ctx, "weir-audit.csv", auditColumns, auditCells, func(e models.AuditEntry) int64 { return e.ID },
		func(ctx context.Context, page models.Page) ([]models.AuditEntry, error) {
			return a.Accounts.AuditEntries(ctx, actorOf(ctx), in.model(), page)
		})
}

func auditCells(e models.AuditEntry) []string {
	return []string{strconv.FormatInt(e.ID, 10), e.At.UTC().Format(time.RFC3339Nano), optionalID(e.ActorID), e.Actor, e.Address, e.Via,
		e.Action, e.Object, strconv.FormatInt(e.ObjectID, 10), optionalID(e.ProjectID), e.Before, e.After, e.Previous, e.Hash}
}

func optionalID(id *int64) string {
	if id == nil {
		return ""
	}
	return strconv.FormatInt(*id, 10)
}
