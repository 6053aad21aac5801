package broker_test

import (
	"strings"
	"testing"

	"weir/models"
	"weir/pool/pooltest"
)

// In a reservation, the parts of a model are planned on what is left of it alone, also as if one holder had nothing.
func TestFreeDevicesOfAReservation(t *testing.T) {
	each(t, 3, func(t *testing.T, o *world) {
		in := o.ask(60)
		in.GPUs = 2
		r := o.reserve(t, in)
		uses, ok := o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 20, GPUMemoryMiB: 1000})
		if !ok {
			t.Fatal("the reservation cannot be used")
		}
		for _, c := range []struct {
			cores, holder int64
			devices       int
			leftOut       string
		}{
			{cores: 40, devices: 2},
			{cores: 60, devices: 1},
			{cores: 60, holder: uses.HolderID, devices: 2},
			{cores: 70, holder: uses.HolderID, leftOut: "60 GPU cores are left on a device of the reservation now"},
		} {
			on := models.DeviceQuery{ProjectID: o.member.ProjectID, Cores: c.cores, Holder: c.holder, ReservationID: r.ID}
			list, why, err := o.Pool.FreeDevices(o.Ctx, o.Root, on)
			pooltest.NoError(t, err)
			for _, d := range list {
				if d.ID != r.Grants[0].DeviceID && d.ID != r.Grants[1].DeviceID || d.MemoryMiB <= 0 || d.MemoryMiB > r.GPUMemoryMiB {
					t.Errorf("%+v is not of the reservation", d)
				}
			}
			text := strings.Join(models.Map(why, models.Text.String), "\n")
			if len(list) != c.devices || text != c.leftOut {
				t.Errorf("with %d cores: %+v, %q", c.cores, list, text)
			}
		}
	})
}
