package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/handlers"
	"weir/models"
)

// present are the physical GPUs that a provider's driver reports.
func present(p handlers.Provider) (gpus []handlers.Device) {
	for _, d := range p.Devices {
		if d.Present && d.ParentID == nil {
			gpus = append(gpus, d)
		}
	}
	return gpus
}

func providersTable(t *table, all []handlers.Provider) {
	t.section("ID", "NAME", "STATE", "GPUS", "MODELS", "AVAILABLE CORES", "OWNER", "LAST HEARTBEAT", "REASON")
	for _, p := range all {
		free := int64(0)
		for _, d := range p.Devices {
			free += d.FreeCores
		}
		gpus := present(p)
		t.row(p.ID, p.Name, p.State, len(gpus), modelsOf(gpus), free, p.Owner, moment(p.SeenAt), because(p))
	}
}

// modelsOf names each model once, in the order of the GPUs.
func modelsOf(gpus []handlers.Device) string {
	var names []string
	for _, d := range gpus {
		if name := modelWords(d.Model, d.Simulated); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// because explains the state of a provider.
func because(p handlers.Provider) string {
	var parts []string
	if p.Reason != "" {
		parts = append(parts, p.Reason)
	}
	if p.RecallAt != nil {
		parts = append(parts, "shares end at "+moment(*p.RecallAt))
	}
	if p.Until != nil {
		parts = append(parts, hoursNow(p))
	}
	return strings.Join(parts, "; ")
}

// hoursNow formats the next begin or end of a provider's lending hours.
func hoursNow(p handlers.Provider) string {
	switch {
	case p.Until == nil && p.Lends:
		return always
	case p.Until == nil:
		return "never"
	case p.Lends:
		return "lends until " + moment(*p.Until)
	default:
		return "lends again at " + moment(*p.Until)
	}
}

// providerTable shows a provider with its terms and devices.
func providerTable(t *table, p handlers.Provider) {
	t.field("Provider", fmt.Sprintf("%s (id %d)", p.Name, p.ID))
	t.field("State", p.State)
	t.field("Reason", because(p))
	t.field("Owner", p.Owner)
	t.field("Last heartbeat", moment(p.SeenAt))
	if p.Agent {
		t.field("Enrolled", momentOr(p.Since, "revoked"))
		t.field("Address", p.Address)
		t.field("GPU code", p.GPUCode)
		t.field("Reported GPU code", p.ReportedCode)
	}
	t.field("Recall reason", p.RecallReason)
	t.field("Users", p.Users)
	termsFields(t, p)
	if len(p.Devices) > 0 {
		devicesTable(t, p.Devices)
	}
}

func termsFields(t *table, p handlers.Provider) {
	cores := "100"
	if p.Terms.Cores > 0 {
		cores = strconv.FormatInt(p.Terms.Cores, 10)
	}
	t.field("Lent cores", cores+" of each GPU")
	t.field("Lent GPUs", idsWords(p.Terms.Devices))
	projects := idsWords(p.Terms.Projects)
	if p.Chosen && len(p.Terms.Projects) == 0 {
		projects = "restricted; none of yours"
	}
	t.field("Projects", projects)
	t.field("Hours", hoursWords(p.Terms))
	t.field("Notice period", minutes(p.Terms.GraceMinutes))
}

// idsWords formats ids in the syntax of parseIDs.
func idsWords(ids []int64) string {
	if len(ids) == 0 {
		return all
	}
	return strings.Join(models.Map(ids, func(id int64) string { return strconv.FormatInt(id, 10) }), ",")
}

func hoursWords(t models.Terms) string {
	if len(t.Hours) == 0 {
		return always
	}
	return strings.Join(models.Map(t.Hours, windowWords), "; ") + " (" + cmp.Or(t.TimeZone, "UTC") + ")"
}

func devicesTable(t *table, devices []handlers.Device) {
	t.section("ID", "GPU", "MODEL", "MEMORY", "SHARING", "AVAILABLE CORES", "AVAILABLE MEMORY", "UTILIZATION", "STATE")
	for _, d := range devices {
		t.row(d.ID, gpuWords(d), modelWords(d.Model, d.Simulated), mib(d.MemoryMiB), sharingWords(d), d.FreeCores, mib(d.FreeMemoryMiB),
			busy(d), deviceState(d))
	}
}

func gpuWords(d handlers.Device) string {
	if d.ParentID != nil {
		return fmt.Sprintf("%d %s", d.Number, d.Profile)
	}
	return strconv.FormatInt(d.Number, 10)
}

// modelWords is the model of a GPU, marked if it is simulated.
func modelWords(model string, simulated bool) string {
	if simulated {
		return model + " (simulated)"
	}
	return model
}

func sharingWords(d handlers.Device) string {
	text := d.Sharing
	if len(d.Layout) > 0 {
		text += " " + strings.Join(d.Layout, ",")
	}
	if d.Changing {
		text += ", changing"
	}
	if d.Mixed {
		text += ", mixed"
	}
	return text
}

func busy(d handlers.Device) string {
	if d.Measured == nil {
		return ""
	}
	return fmt.Sprintf("%d%%", d.Measured.Utilisation)
}

// deviceState formats the state of a device, or why it cannot be lent.
func deviceState(d handlers.Device) string {
	switch {
	case !d.Present:
		return "missing"
	case d.Trouble != "":
		return d.Trouble
	case !d.Lent:
		return "not lent"
	default:
		return "healthy"
	}
}
