package pool_test

import (
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// What is available for a project is what it would be granted, and it is said why the rest is not.
func TestFreeDevices(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, o.DevicesByUUID(t)["GPU-1"].ID, providers.DeviceInput{Sharing: models.SharingMPS}); err != nil {
			t.Fatal(err)
		}
		running := pooltest.Machine(2)
		running[1].Sharing = models.SharingMPS
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(running)})
		inUse := o.WantClaim(t, vision, models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 1000}, models.OutcomeGranted)
		check := func(name string, project, cores, holder int64, devices, single int, leftOut string) {
			t.Helper()
			list, why, err := o.Pool.FreeDevices(o.Ctx, o.Root, models.DeviceQuery{ProjectID: project, Cores: cores, Holder: holder})
			for _, d := range list {
				if d.Single {
					single--
				}
			}
			text := ""
			for _, line := range why {
				text += line.String() + "\n"
			}
			if err != nil || len(list) != devices || (single != 0 && holder > 0) || !strings.Contains(text, leftOut) || (leftOut == "") != (text == "") {
				t.Errorf("%s: %+v, %q, %v", name, list, text, err)
			}
		}
		check("what it has counts", vision.ProjectID, 100, 0, 1, 0, "1 device: 100 GPU cores requested on one device; at most 40 available")
		check("as if it had nothing", vision.ProjectID, 100, inUse.HolderID, 2, 1, "")
		check("another project's", speech.ProjectID, 10, 0, 1, 0, "1 device: in use by another project, and mixing is not allowed")
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			p := o.Provider(t)
			p.Terms.Projects = []int64{vision.ProjectID}
			return q.UpdateProvider(&p)
		})
		check("not lent", speech.ProjectID, 10, 0, 0, 0, "2 devices: its owner does not lend it to this project now")
	})
}
