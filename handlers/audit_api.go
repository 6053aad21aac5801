package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

func (a rest) auditOperations(s section) {
	register(a, s, route{http.MethodGet, "/audit", 200, "list-audit",
		models.Say("List audit log entries, newest first; requires platform administrator")}, a.listAudit, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/audit.csv", 200, "download-audit",
		models.Say("Export the audit log as CSV, newest first; requires platform administrator")}, a.downloadAudit, http.StatusNotFound)
	describeDownload(s, "/audit.csv", "text/csv")
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID        int64     `json:"id" doc:"sequence number, from 1"`
	At        time.Time `json:"at"`
	ActorID   *int64    `json:"actor_id,omitempty" doc:"user ID of the actor; absent for the system"`
	Actor     string    `json:"actor"`
	Address   string    `json:"address,omitempty" doc:"source IP address"`
	Via       string    `json:"via,omitempty" doc:"authentication method: session, token NAME, password, password link, passkey, invitation, agent, command or system"`
	Action    string    `json:"action"`
	Object    string    `json:"object" doc:"resource type"`
	ObjectID  int64     `json:"object_id"`
	ProjectID *int64    `json:"project_id,omitempty"`
	Before    any       `json:"before,omitempty" doc:"resource before the change; absent on creation"`
	After     any       `json:"after,omitempty" doc:"resource after the change; absent on deletion"`
	Previous  string    `json:"previous,omitempty" doc:"SHA-256 of the previous entry; absent in the first entry"`
	SHA256    string    `json:"sha256" doc:"SHA-256 of all fields"`
}

func auditEntryOf(e models.AuditEntry) AuditEntry {
	return AuditEntry{ID: e.ID, At: e.At.UTC(), ActorID: e.ActorID, Actor: e.Actor, Address: e.Address, Via: e.Via, Action: e.Action,
		Object: e.Object, ObjectID: e.ObjectID, ProjectID: e.ProjectID, Before: auditValue(e.Before), After: auditValue(e.After),
		Previous: e.Previous, SHA256: e.Hash}
}

// auditValue parses the stored JSON of an entry.
func auditValue(text string) any {
	if text == "" || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// AuditList selects a page of the audit log.
type AuditList struct {
	Paging
	policies.AuditQuery
}

func (a rest) listAudit(ctx context.Context, in *AuditList) (*Response[List[AuditEntry]], error) {
	return listed(in.Paging, func(e models.AuditEntry) int64 { return e.ID }, func(p store.Page) ([]models.AuditEntry, error) {
		return a.Accounts.AuditEntries(ctx, actorOf(ctx), in.AuditQuery, p)
	}, auditEntryOf)
}

var auditColumns = []string{"id", "at", "actor_id", "actor", "address", "via", "action", "object", "object_id", "project_id",
	"before", "after", "previous", "sha256"}

func (a rest) downloadAudit(ctx context.Context, in *policies.AuditQuery) (*huma.StreamResponse, error) {
	return downloaded(a, ctx, "weir-audit.csv", auditColumns, auditCells, byID(func(e models.AuditEntry) int64 { return e.ID }),
		func(ctx context.Context, page store.Page) ([]models.AuditEntry, error) {
			return a.Accounts.AuditEntries(ctx, actorOf(ctx), *in, page)
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
