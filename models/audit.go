package models

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AuditEntry is one recorded change. Before and After are JSON.
//
// Entries form a hash chain: each contains the hash of the one before it, and
// its own hash covers all its fields. ID is the position in the chain, from 1;
// the store sets it, with both hashes, when the transaction is committed.
type AuditEntry struct {
	ID        int64
	At        time.Time
	ActorID   *int64
	Actor     string
	Address   string // of the client; empty without one
	Via       string // how the actor was authenticated: see policies.Actor
	Action    string
	Object    string
	ObjectID  int64
	ProjectID *int64
	Before    string
	After     string
	Previous  string // Hash of entry ID-1, empty for the first
	Hash      string // hexadecimal SHA-256
}

// AuditHead is a position in the chain, usually its end: an entry's number and
// hash.
type AuditHead struct {
	Number int64
	Hash   string
}

// String is HASH:NUMBER.
func (h AuditHead) String() string { return h.Hash + ":" + strconv.FormatInt(h.Number, 10) }

// ParseAuditHead parses HASH:NUMBER.
func ParseAuditHead(text string) (h AuditHead, err error) {
	hash, number, _ := strings.Cut(strings.TrimSpace(text), ":")
	raw, hashErr := hex.DecodeString(hash)
	h.Hash = strings.ToLower(hash)
	h.Number, err = strconv.ParseInt(number, 10, 64)
	if err != nil || hashErr != nil || len(raw) != sha256.Size || h.Number < 1 {
		return AuditHead{}, fmt.Errorf("%q must be HASH:NUMBER, as an earlier check has printed it", text)
	}
	return h, nil
}

// auditTime is the format in which times are hashed: UTC, in microseconds, the
// precision of both databases.
const auditTime = "2006-01-02T15:04:05.000000Z"

// sum is the entry's hash: SHA-256 over a line that names this encoding, and
// then every field as its length in bytes, a colon, its text and a line feed.
// An absent number is an empty text.
func (e *AuditEntry) sum() string {
	h := sha256.New()
	fmt.Fprint(h, "weir audit 1\n")
	for _, field := range []string{
		strconv.FormatInt(e.ID, 10), e.At.UTC().Format(auditTime), digits(e.ActorID), e.Actor, e.Address, e.Via, e.Action,
		e.Object, strconv.FormatInt(e.ObjectID, 10), digits(e.ProjectID), e.Before, e.After, e.Previous,
	} {
		fmt.Fprintf(h, "%d:%s\n", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func digits(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// AppendTo chains the entry to head and moves head to the entry.
func (e *AuditEntry) AppendTo(head *AuditHead) {
	e.ID, e.Previous = head.Number+1, head.Hash
	e.At = e.At.UTC().Truncate(time.Microsecond)
	e.Hash = e.sum()
	*head = AuditHead{e.ID, e.Hash}
}

// BrokenAudit is the first entry at which the chain of the audit breaks.
type BrokenAudit struct {
	Number int64
	Reason string
}

// Error names the entry.
func (b *BrokenAudit) Error() string {
	return fmt.Sprintf("the audit is broken at entry %d: %s", b.Number, b.Reason)
}

// Verify checks that the entry follows the one before it, and that it is the
// one known or expected at its position.
func (e *AuditEntry) Verify(before AuditHead, positions ...AuditHead) error {
	next := before.Number + 1
	switch {
	case e.ID < next:
		return &BrokenAudit{e.ID, "it was not written by Weir: no entry has this number"}
	case e.ID > next:
		return &BrokenAudit{next, fmt.Sprintf("it is missing; the next one is entry %d", e.ID)}
	case e.Hash != e.sum():
		return &BrokenAudit{e.ID, "it is not as it was written"}
	case e.Previous != before.Hash:
		return &BrokenAudit{e.ID, fmt.Sprintf("it does not follow from entry %d: one of the two was replaced", before.Number)}
	}
	for _, p := range positions {
		if p.Number == e.ID && p.Hash != e.Hash {
			return &BrokenAudit{e.ID, "it is another one than in its place before: the entries up to it were written anew"}
		}
	}
	return nil
}

// formerActions are what entries of the past call actions: entries never change.
var formerActions = map[string]string{"ask": "submit", "enlist": "register"}

// PresentAction is what an entry's action is called now.
func PresentAction(action string) string { return cmp.Or(formerActions[action], action) }

// ActionNames are what entries may call an action.
func ActionNames(action string) []string {
	names := []string{action}
	for former, present := range formerActions {
		if present == action {
			names = append(names, former)
		}
	}
	return names
}
