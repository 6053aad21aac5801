package web

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/a-h/templ"

	"weir/models"
)

// maxChangesShown is how many fields of a change are shown at once.
const maxChangesShown = 6

// change is one changed field. Absent values are empty.
type change struct{ Name, Before, After string }

// columns are the labels of audited fields that are not inputs, or mean
// something else there.
var columns = map[string]models.Text{
	"access":             models.Say("Access level"),
	"account":            models.Say("Account"),
	"address":            models.Say("Address"),
	"agent":              models.Say("Managed by an agent"),
	"applied":            models.Say("Sharing mode in effect"),
	"architecture":       models.Say("Architecture"),
	"at":                 models.Say("Time"),
	"baseline":           models.Say("Amounts at submission"),
	"backup_at":          models.Say("Time of the backup"),
	"generation":         models.Say("Generation"),
	"beyond":             models.Say("Allocated beyond the capacity"),
	"bytes":              models.Say("Size in bytes"),
	"by_id":              models.Say("Handed over by"),
	"changed_at":         models.Say("Changed at"),
	"deadline":           models.Say("Membership"),
	"decided":            models.Say("Decision"),
	"decided_at":         models.Say("Decided at"),
	"decider_id":         models.Say("Approver"),
	"decision_reason":    models.Say("Reason for the decision"),
	"demand":             models.Say("Request"),
	"first_id":           models.Say("First deployment"),
	"parts":              models.Say("Parts"),
	"outgoing":           models.Say("Outgoing connections"),
	"hosts":              models.Say("Hosts"),
	"discovered_key":     models.Say("Discovered as"),
	"download":           models.Say("Download"),
	"draining":           models.Say("Draining"),
	"driver":             models.Say("Driver"),
	"ecc":                models.Say("ECC"),
	"ecc_errors":         models.Say("ECC errors"),
	"expires_at":         models.Say("Expires"),
	"scopes":             models.Say("Scopes"),
	"issuer":             models.Say("Issuer"),
	"join":               models.Say("Membership"),
	"join_requests":      models.Say("Join requests"),
	"kind":               models.Say("Type"),
	"launch":             models.Say("Launch parameters"),
	"limit":              models.Say("Limit per member"),
	"machine":            models.Say("Machine ID"),
	"member_id":          models.Say("Member"),
	"mig_profiles":       models.Say("MIG profiles"),
	"minimum":            models.Say("Minimum"),
	"minor":              models.Say("Device minor number"),
	"model":              models.Say("Model"),
	"numa":               models.Say("NUMA node"),
	"number":             models.Say("Number"),
	"old_secret_until":   models.Say("Old secret valid until"),
	"origin":             models.Say("Address"),
	"own":                models.Say("Decided by the requester"),
	"path":               models.Say("Path"),
	"parent_id":          models.Say("Parent GPU"),
	"pci":                models.Say("PCI address"),
	"peers":              models.Say("Connected by NVLink"),
	"period":             models.Say("Period of use"),
	"permissions":        models.Say("Permissions"),
	"present":            models.Say("Present"),
	"profile":            models.Say("MIG profile"),
	"project":            models.Say("Project"),
	"provider_id":        models.Say("Provider"),
	"quota":              models.Say("Quota"),
	"ratio":              models.Say("Overcommit"),
	"recall_at":          models.Say("Shares end at"),
	"recall_reason":      models.Say("Reason for the recall"),
	"removed_at":         models.Say("Removed at"),
	"reported_code":      models.Say("New GPU code"),
	"requested":          models.Say("Requested"),
	"requester_id":       models.Say("Requester"),
	"inviter_id":         models.Say("Inviter"),
	"replaces_earlier":   models.Say("Replaces an earlier one"),
	"role":               models.Say("Role"),
	"seen_at":            models.Say("Last heartbeat"),
	"serial":             models.Say("Certificate serial number"),
	"signal":             models.Say("Signal"),
	"simulated":          models.Say("Simulated"),
	"state":              models.Say("State"),
	"stated_cpu_milli":   models.Say("CPU capacity"),
	"stated_memory_mib":  models.Say("Memory capacity"),
	"stated_storage_mib": models.Say("Storage capacity"),
	"subject_id":         models.Say("Subject ID"),
	"subject":            models.Say("Subject"),
	"terms":              models.Say("Terms"),
	"trouble":            models.Say("Problem"),
	"sharing_error":      models.Say("Why the sharing mode is not in effect"),
	"unavailable":        models.Say("Unavailable"),
	"url_sha256":         models.Say("SHA-256 of the address"),
	"user_id":            models.Say("Person"),
	"uuid":               models.Say("UUID"),
	"xid":                models.Say("Last XID error"),
	"xid_at":             models.Say("Time of the last XID error"),
}

// columnLabel is the label of an audited field.
func columnLabel(name string) (models.Text, bool) {
	if t, ok := columns[name]; ok {
		return t, true
	}
	f, ok := fields[name]
	return f.Label, ok
}

// label is the name of the field: a label for each part of it. Numbers of list
// items and names of environment variables and frameworks remain.
func (c change) label(ctx context.Context) string {
	parts := strings.Split(c.Name, ".")
	for i, part := range parts {
		if t, ok := columnLabel(strings.ToLower(part)); ok {
			parts[i] = TT(ctx, t)
		}
	}
	return strings.Join(slices.Compact(parts), " · ") // a request of a limit has a limit
}

// column is the last part of the name that is not the number of a list item.
func (c change) column() string {
	name := strings.TrimRightFunc(c.Name, func(r rune) bool { return unicode.IsDigit(r) || r == '.' })
	return strings.ToLower(name[strings.LastIndex(name, ".")+1:])
}

// attributes marks values that are written as programs write them.
func (c change) attributes() templ.Attributes {
	if c.column() == "scopes" {
		return templ.Attributes{"class": "mono"}
	}
	return nil
}

// value formats one side of the change.
func (c change) value(ctx context.Context, value string) string {
	name := c.column()
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return columnTime(name, t)
	}
	switch {
	case name == "state" || name == "permission":
		return stateWord(ctx, value)
	case name == "kind":
		return translateWord(ctx, kindWords, value)
	case c.Name == "outgoing.access":
		return TT(ctx, models.OutgoingAccess(value).Words())
	case name == "access":
		return accessWord(ctx, models.FileAccess(value))
	case name == "download" && value != "true" && value != "false":
		return downloadWord(ctx, models.FileDownload(value))
	case name == "subject":
		return translateWord(ctx, subjectWords, value)
	case name == "sharing" || name == "applied":
		return sharing(ctx, value)
	case name == "second_factor":
		return TT(ctx, models.Audience(value).Words())
	case name == "days":
		return weekday(ctx, value)
	case strings.HasPrefix(c.Name, "ratio."):
		return value + "%"
	case value == "true" || value == "false":
		return yesNo(ctx, value == "true")
	}
	return parameterValue(ctx, models.Parameter{Name: strings.TrimPrefix(name, "stated_"), Value: value})
}

// columnTime formats a time; limits of periods are days.
func columnTime(name string, t time.Time) string {
	switch name {
	case "starts_at", "joined_at":
		return models.Moment(t).String()
	case "ends_at", "until":
		return models.EndMoment(t).String()
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// changes lists the fields in which both sides, as JSON, differ. What is not
// an object is one field without a name. The ID, the time and the version,
// which change with every entry, are left out.
func changes(ctx context.Context, before, after string) (list []change) {
	was, is := flatten(ctx, before), flatten(ctx, after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range unshown {
		delete(names, name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] != is[name] {
			list = append(list, change{name, was[name], is[name]})
		}
	}
	return list
}

// unshown are the fields that change with every entry.
var unshown = []string{"id", "created_at", "version"}

// flatten reads a JSON object as dotted names and values, with the items of a
// list by their numbers; anything else is one value without a name.
func flatten(ctx context.Context, text string) map[string]string {
	out := map[string]string{}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		v = text
	}
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{"": v}
	}
	flattenInto(ctx, out, "", m)
	return out
}

func flattenInto(ctx context.Context, out map[string]string, prefix string, m map[string]any) {
	for name, v := range m {
		name = strings.TrimPrefix(prefix+name, ".")
		switch v := v.(type) {
		case map[string]any:
			if text := storedText(v); !text.Empty() {
				out[name] = TT(ctx, text)
			} else {
				flattenInto(ctx, out, name+".", v)
			}
		case []any:
			for i, item := range v {
				flattenInto(ctx, out, name+".", map[string]any{strconv.Itoa(i + 1): item})
			}
		case string:
			out[name] = v
		case nil: // as if it were not there
		default:
			b, _ := json.Marshal(v) // it was just read from JSON
			out[name] = string(b)
		}
	}
}

// storedText reads a text of the catalog; empty if the object is none.
func storedText(m map[string]any) (t models.Text) {
	for key := range m {
		if !slices.Contains([]string{"k", "f", "a"}, key) {
			return t
		}
	}
	b, err := json.Marshal(m)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return models.Text{}
	}
	return t
}
