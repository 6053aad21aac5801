package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/workspaces/local"
)

const setupLifetime = 24 * time.Hour

// summary is what a started server tells the person or program that started it.
type summary struct {
	Version     string            `json:"version"`
	Address     string            `json:"address"`
	Agents      string            `json:"agents,omitempty"` // address of their listener
	Database    string            `json:"database"`
	DataDir     string            `json:"data_dir"`
	Runtime     string            `json:"runtime"`
	Pool        []string          `json:"pool"`
	Settings    map[string]string `json:"settings"` // that differ from the defaults
	NotEnforced []string          `json:"not_enforced"`
	SetupLink   string            `json:"setup_link,omitempty"`
}

// printSummary writes the summary: text on a terminal, otherwise one line of JSON.
func (p *portal) printSummary(ctx context.Context, out io.Writer) error {
	s, err := p.summary(ctx)
	if err != nil {
		return err
	}
	if config.IsTerminal(out) {
		return s.writeText(out)
	}
	return json.NewEncoder(out).Encode(s)
}

func (p *portal) summary(ctx context.Context) (s summary, err error) {
	v := buildVersion()
	s = summary{Version: strings.TrimSpace(v.Version + " " + v.Commit), Address: p.origin, Database: "PostgreSQL",
		Runtime: "pods on Kubernetes", Settings: p.cfg.Changed(), NotEnforced: []string{}}
	if p.agents.listener != nil {
		s.Agents = p.agents.listener.Addr().String()
	}
	if s.DataDir, err = filepath.Abs(p.cfg.DataDir); err != nil {
		return s, err
	}
	if p.cfg.DatabaseURL == "" {
		s.Database = "SQLite, " + filepath.Join(s.DataDir, filepath.Base(p.cfg.SQLiteFile()))
	}
	if r, ok := p.runtime.(*local.Runtime); ok {
		s.Runtime = fmt.Sprintf("processes on this machine, as user %d", r.User())
		s.NotEnforced = notEnforced(r.Limits())
		if !p.idRange().Empty() {
			s.Runtime = "processes on this machine, with a user for each member"
		}
		if shared := p.notSeparated(r.User()); shared != "" {
			s.NotEnforced = append(s.NotEnforced, shared)
		}
	}
	if s.Pool, err = p.poolSummary(ctx); err != nil {
		return s, err
	}
	token, err := p.accounts.SetupToken(ctx, setupLifetime)
	if token != "" {
		s.SetupLink = p.origin + "/setup?token=" + token
	}
	return s, err
}

// poolSummary counts the GPUs by model.
func (p *portal) poolSummary(ctx context.Context) ([]string, error) {
	devices, err := p.pool.Devices(ctx)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, d := range devices {
		if d.Present && d.ParentID == nil {
			model := d.Model
			if d.Simulated {
				model += ", simulated"
			}
			count[model]++
		}
	}
	list := []string{}
	for model, n := range count {
		list = append(list, fmt.Sprintf("%d × %s", n, model))
	}
	slices.Sort(list)
	return list, nil
}

// notEnforced lists the limits that are not enforced, with the reason.
func notEnforced(limits []models.Limit) []string {
	list := []string{}
	for _, l := range limits {
		if !l.Enforced {
			list = append(list, l.Resource+": "+l.How.String())
		}
	}
	return list
}

func (s summary) writeText(out io.Writer) error {
	settings := make([]string, 0, len(s.Settings))
	for name, value := range s.Settings {
		settings = append(settings, name+"="+value)
	}
	slices.Sort(settings)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range [][2]string{
		{"Weir", s.Version},
		{"Address", s.Address},
		{"Agents", cmp.Or(s.Agents, "none can join")},
		{"Database", s.Database},
		{"Data", s.DataDir},
		{"Workspaces", s.Runtime},
		{"Pool", cmp.Or(strings.Join(s.Pool, "; "), "no GPUs")},
		{"Settings", cmp.Or(strings.Join(settings, " "), "defaults")},
		{"Not enforced", strings.Join(s.NotEnforced, "; ")},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
		}
	}
	if s.SetupLink != "" {
		fmt.Fprintf(w, "\nTo create the administrator, open this link within %d hours. It works once.\n\n  %s\n",
			int(setupLifetime.Hours()), s.SetupLink)
	}
	fmt.Fprintln(w)
	return w.Flush()
}
