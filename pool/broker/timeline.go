package broker

import (
	"time"

	"weir/models"
	"weir/pool/timeline"
)

func spanOf(g models.ReservationGrant) timeline.Span {
	return timeline.Span{From: g.StartsAt.UnixMicro(), Until: g.EndsAt.UnixMicro()}
}

func amountOf(g models.ReservationGrant) timeline.Amount {
	return timeline.Amount{Cores: g.Cores, MemoryMiB: g.MemoryMiB}
}

func demandOf(d models.Demand, duration time.Duration, from, until time.Time) timeline.Demand {
	return timeline.Demand{GPUs: int(d.GPUs), Each: timeline.Amount{Cores: d.Cores, MemoryMiB: d.GPUMemoryMiB},
		Duration: duration.Microseconds(), Window: timeline.Span{From: from.UnixMicro(), Until: until.UnixMicro()}}
}

func recorded(grants []timeline.Grant) (list []models.ReservationGrant) {
	for _, g := range grants {
		list = append(list, models.ReservationGrant{DeviceID: g.Device, Cores: g.Amount.Cores, MemoryMiB: g.Amount.MemoryMiB,
			StartsAt: time.UnixMicro(g.Span.From).UTC(), EndsAt: time.UnixMicro(g.Span.Until).UTC()})
	}
	return list
}
