package cli

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/pool/providers"
)

func newDeviceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "device", Short: "View GPUs and set how they are shared"}
	cmd.AddCommand(newDeviceShowCommand(), newDeviceShareCommand(), newTelemetryCommand())
	return cmd
}

func devicePath(id int64) string { return fmt.Sprintf("/pool/devices/%d", id) }

// deviceID finds a device by its id, or by its UUID.
func (s *session) deviceID(ref string) (int64, error) {
	return resolve(s, ref, providersPath, nil, func(p handlers.Provider) int64 {
		for _, d := range p.Devices {
			if d.UUID == ref {
				return d.ID
			}
		}
		return 0
	}, "no device with the UUID %q; “weir provider show” lists the devices of a provider")
}

func newDeviceShowCommand() *cobra.Command {
	return remoteCommand("show DEVICE", "Show a GPU, its measurements and its shares", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			id, err := s.deviceID(args[0])
			if err != nil {
				return err
			}
			return send(s, http.MethodGet, devicePath(id), nil, "", deviceTable)
		})
}

func deviceTable(t *table, d handlers.DeviceHistory) {
	t.field("Device", fmt.Sprintf("%s (id %d)", d.UUID, d.ID))
	t.field("Provider", fmt.Sprintf("%s, GPU %s", d.Provider, gpuWords(d.Device)))
	t.field("Model", strings.TrimSpace(modelWords(d.Device.Model, d.Device.Simulated)+" "+d.Architecture))
	t.field("Memory", mib(d.MemoryMiB))
	t.field("PCI", d.PCI)
	t.field("Driver", d.Driver)
	if d.NUMA != nil {
		t.field("NUMA node", *d.NUMA)
	}
	t.field("NVLink to", strings.Join(d.Peers, ", "))
	t.field("ECC", eccWords(d.Device))
	if d.XID != 0 {
		t.field("Last error", fmt.Sprintf("XID %d at %s", d.XID, momentOr(d.XIDAt, "unknown time")))
	}
	t.field("State", deviceState(d.Device))
	t.field("Sharing", sharingWords(d.Device))
	t.field("MIG profiles", strings.Join(d.MIGProfiles, ", "))
	t.field("Available", fmt.Sprintf("%d of %d cores, %s", d.FreeCores, d.Cores, mib(d.FreeMemoryMiB)))
	measuredFields(t, d.Measured)
	if len(d.Shares) > 0 {
		sharesTable(t, d.Shares)
	}
	if d.Measured != nil && len(d.Measured.Processes) > 0 {
		t.section("PID", "PROCESS", "MEMORY")
		for _, p := range d.Measured.Processes {
			t.row(p.PID, p.Name, mib(p.MemoryMiB))
		}
	}
}

func eccWords(d handlers.Device) string {
	if d.ECC == "" {
		return ""
	}
	return fmt.Sprintf("%s, %s", d.ECC, count(d.ECCErrors, "uncorrected error", "uncorrected errors"))
}

func measuredFields(t *table, m *handlers.Measured) {
	if m == nil {
		t.field("Measured", "no data yet")
		return
	}
	t.field("Measured", moment(m.At))
	t.field("Utilization", fmt.Sprintf("%d%%", m.Utilisation))
	t.field("Memory used", mib(m.MemoryUsedMiB))
	t.field("Temperature", fmt.Sprintf("%d °C", m.Temperature))
	t.field("Power", watts(m.PowerMW))
}

func watts(milliwatts int64) string { return fmt.Sprintf("%.1f W", float64(milliwatts)/1000) }

func sharesTable(t *table, shares []handlers.Share) {
	t.section("USER", "PROJECT", "WORKSPACE", "CORES", "MEMORY", "ENFORCEMENT", "SINCE", "ENDS")
	for _, v := range shares {
		workspace := ""
		if v.WorkspaceID != 0 {
			workspace = strings.TrimSpace(fmt.Sprintf("%d %s", v.WorkspaceID, v.Workspace))
		}
		t.row(v.User, v.Project, workspace, v.Cores, mib(v.MemoryMiB), v.Enforcement, moment(v.From), momentOr(v.EndsAt, ""))
	}
}

func newDeviceShareCommand() *cobra.Command {
	mode := config.Choice{Allowed: []string{models.SharingExclusive, models.SharingTimeSlicing, models.SharingMPS, models.SharingMIG}}
	var layout string
	var mixed bool
	var cmd *cobra.Command
	cmd = remoteCommand("share DEVICE", "Set how a GPU is shared", cobra.ExactArgs(1), func(s *session, args []string) error {
		switch {
		case mode.Value == "":
			return config.Usagef("--mode is required: one of %s", strings.Join(mode.Allowed, ", "))
		case cmd.Flags().Changed("layout") && mode.Value != models.SharingMIG:
			return config.Usagef("--layout requires --mode mig")
		}
		id, err := s.deviceID(args[0])
		if err != nil {
			return err
		}
		d, read, err := fetch[handlers.DeviceHistory](s, s.client, devicePath(id))
		if err != nil {
			return err
		}
		profiles, _ := config.ParseList(layout)
		in := providers.DeviceInput{Sharing: mode.Value, Layout: profiles, Mixed: d.Mixed && mode.Value != models.SharingExclusive}
		if mode.Value == models.SharingMIG && !cmd.Flags().Changed("layout") {
			in.Layout = d.Layout
		}
		if cmd.Flags().Changed("mixed") {
			in.Mixed = mixed
		}
		return send(s, http.MethodPut, devicePath(d.ID), in, read.etag, func(t *table, now handlers.DeviceHistory) {
			t.line("%s: %s", now.UUID, sharingWords(now.Device))
		})
	})
	cmd.Flags().Var(&mode, "mode", "sharing mode: exclusive (one user), time-slicing (no isolation), mps (limits enforced by MPS) or mig (hardware partitions)")
	cmd.Flags().StringVar(&layout, "layout", "", "`PROFILES` of the MIG instances, such as 3g.40gb,4g.40gb; with --mode mig (default: unchanged)")
	cmd.Flags().BoolVar(&mixed, "mixed", false, "allow shares of different projects on the GPU; administrators only (default: unchanged)")
	return cmd
}

func newTelemetryCommand() *cobra.Command {
	span := config.Choice{Value: providers.LastHour, Allowed: providers.Spans}
	cmd := remoteCommand("telemetry DEVICE", "Show the measurements of a GPU over time", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			id, err := s.deviceID(args[0])
			if err != nil {
				return err
			}
			return send(s, http.MethodGet, devicePath(id)+"/telemetry?span="+span.Value, nil, "", telemetryTable)
		})
	cmd.Flags().Var(&span, "span", "the last hour in steps of 5 seconds, day in minutes, or 90 days in hours")
	return cmd
}

func telemetryTable(t *table, v handlers.Telemetry) {
	if len(v.Buckets) == 0 {
		t.line("No measurements in this period.")
		return
	}
	t.section("FROM", "DURATION", "UTILIZATION", "MAX", "MEMORY", "MAX", "TEMPERATURE", "MAX", "POWER", "MAX")
	for _, b := range v.Buckets {
		t.row(moment(b.At), time.Duration(b.Seconds)*time.Second,
			fmt.Sprintf("%d%%", b.Mean.Utilisation), fmt.Sprintf("%d%%", b.Most.Utilisation), mib(b.Mean.MemoryUsedMiB), mib(b.Most.MemoryUsedMiB),
			fmt.Sprintf("%d °C", b.Mean.Temperature), fmt.Sprintf("%d °C", b.Most.Temperature), watts(b.Mean.PowerMW), watts(b.Most.PowerMW))
	}
}
