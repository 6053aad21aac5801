package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/pool/broker"
)

// workspaceSettings are defaults of launch parameters, which projects and environments can have
// others of, and what concerns deployments.
var workspaceSettings = []setting{
	{name: "idle-timeout", kind: "DURATION", defaultText: "0s",
		help: "time without work after which a workspace is stopped, unless its project or environment says otherwise; 0s: never",
		set:  into(func(c *Config) **int64 { return &c.Launch.IdleMinutes }, parseMinutes)},
	{name: "gpu-idle-timeout", kind: "DURATION", defaultText: "4h",
		help: "the same for workspaces with GPUs, which are released then",
		set:  into(func(c *Config) **int64 { return &c.Launch.GPUIdleMinutes }, parseMinutes)},
	{name: "kernel-idle-timeout", kind: "DURATION", defaultText: fmt.Sprintf("%dm", models.KernelIdleMinutes),
		help: "time without work after which a GPU kernel of a notebook releases its GPU, while the workspace goes on, unless its project or environment says otherwise; 0s: never",
		set:  into(func(c *Config) **int64 { return &c.Launch.KernelIdleMinutes }, parseMinutes)},
	{name: "split-presets", kind: "FILE",
		help: "file with the presets by which models are split, in place of those that “weir model presets” prints; changes are used at once",
		set:  into(func(c *Config) *string { return &c.SplitPresets }, parseDir)},
	{name: "deployment-move-after", kind: "DURATION", defaultText: "5m",
		help: "time after which a deployment is deployed on other GPUs, or its loading given up, if the machine of one of its own is lost, or the GPU is missing or has an error",
		set:  into(func(c *Config) *time.Duration { return &c.DeploymentMoveAfter }, durationFrom(time.Second))},
}

const longestAhead = 90 * 24 * time.Hour

var reservationSettings = []setting{
	{name: "reservation-max-ahead", kind: "DURATION", defaultText: "2160h",
		help: "how far ahead the end of a reservation can be; at most 2160h (90 days)",
		set:  into(func(c *Config) *time.Duration { return &c.Reservations.MaxAhead }, durationWithin(time.Hour, longestAhead))},
	{name: "reservation-max-duration", kind: "DURATION", defaultText: "168h",
		help: "how long a reservation can be",
		set:  into(func(c *Config) *time.Duration { return &c.Reservations.MaxDuration }, durationWithin(time.Minute, longestAhead))},
	{name: "reservation-budget", kind: "DURATION", defaultText: "40h",
		help: "the GPU core-hours that a member can have reserved ahead, as the time for which they would be the whole limit of the role",
		set:  into(func(c *Config) *time.Duration { return &c.Reservations.Budget }, durationWithin(time.Minute, longestAhead))},
	{name: "reservation-use-within", kind: "DURATION", defaultText: "15m",
		help: "time after the start of a reservation within which it must be used; otherwise it expires",
		set:  into(func(c *Config) *time.Duration { return &c.Reservations.UseWithin }, durationWithin(time.Minute, longestAhead))},
	{name: "reservation-placement", kind: "NAME", defaultText: "pack",
		help: "which GPUs are reserved of those available at the same time: pack (with the least left, so that others stay whole), spread (the most left) or nearest (of the machines with the lowest latency to the client; requires client-zones)",
		set:  into(func(c *Config) *broker.Placement { return &c.Reservations.Objectives.Placement }, broker.ParsePlacement)},
	{name: "client-zones", kind: "NAME=NETWORK[,NETWORK]@HOST:PORT;...",
		help: "networks of clients, each with a TCP address in it to which all machines measure their latency, such as berlin=10.1.0.0/16@gateway.berlin.example.org:443",
		set:  into(func(c *Config) *models.ClientZones { return &c.Reservations.Objectives.Zones }, optional(models.ParseClientZones))},
	{name: "reservation-gpu-models", kind: "TASK=MODEL[,MODEL];...",
		help: "GPU models that task types prefer, the best first, such as training=h100,a100;batch=t4; other models are reserved if those are not available at that time",
		set:  into(func(c *Config) *map[models.TaskType][]string { return &c.Reservations.Objectives.Models }, optional(parsePreferredModels))},
}

func (c *Config) checkReservations() (p problems) {
	o := c.Reservations.Objectives
	p.require(o.Placement != broker.Nearest || len(o.Zones) > 0, "reservation-placement: nearest requires client-zones")
	return p
}

// parsePreferredModels reads the GPU models that task types prefer.
func parsePreferredModels(text string) (map[models.TaskType][]string, error) {
	preferred := map[models.TaskType][]string{}
	for entry := range strings.SplitSeq(text, ";") {
		name, list, _ := strings.Cut(entry, "=")
		task := models.TaskType(strings.TrimSpace(name))
		if !slices.Contains(models.TaskTypes, task) || preferred[task] != nil {
			return nil, fmt.Errorf("%q must begin with interactive=, inference=, training= or batch=, each at most once", entry)
		}
		for model := range strings.SplitSeq(list, ",") {
			if model = strings.TrimSpace(model); model == "" {
				return nil, fmt.Errorf("%q must name GPU models, such as training=h100,a100", entry)
			}
			preferred[task] = append(preferred[task], model)
		}
	}
	return preferred, nil
}

// parseMinutes reads a duration in whole minutes.
func parseMinutes(text string) (*int64, error) {
	d, err := durationWithin(0, models.MaxIdleMinutes*time.Minute)(text)
	if err == nil && d%time.Minute != 0 {
		err = fmt.Errorf("%q must be in whole minutes, such as 90m or 4h", text)
	}
	return new(int64(d / time.Minute)), err
}
