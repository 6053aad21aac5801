package broker_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/broker"
	"weir/pool/providers"
)

// BenchmarkReserve reserves for one client, whose requests are decided one by one, and for 32
// at once, in four projects, on a pool of 1,000 GPUs: each decision is committed.
func BenchmarkReserve(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect+"/1 client", func(b *testing.B) { benchmarkReserve(b, dialect, 1) })
		b.Run(dialect+"/32 clients", func(b *testing.B) { benchmarkReserve(b, dialect, 32) })
	}
}

func benchmarkReserve(b *testing.B, dialect string, n int) {
	s := storetest.Open(b, dialect)
	access, err := policies.NewAccess()
	if err != nil {
		b.Fatal(err)
	}
	clients := benchmarkPool(b, s, n)
	service := broker.New(s, access, pool.New(s, access, providers.New(s, access, nil)), broker.DefaultRules)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() {
			r := rand.New(rand.NewPCG(15, uint64(i)))
			for left.Add(-1) >= 0 {
				from := s.Now().Add(time.Duration(1+r.IntN(80*24)) * time.Hour)
				if _, err := service.Reserve(b.Context(), c.actor, broker.ReservationInput{ProjectID: c.project, GPUs: 1, Cores: 10,
					DurationMinutes: 60, From: &from, AcceptLater: true}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

type benchmarkClient struct {
	actor   policies.Actor
	project int64
}

// benchmarkPool makes a pool of 125 machines with eight GPUs each, and clients of it.
func benchmarkPool(b *testing.B, s *store.Store, n int) (clients []benchmarkClient) {
	b.Helper()
	now := s.Now()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	var roles []models.Role
	storetest.InTx(b, s, func(q *store.Queries) error {
		for i := range 125 {
			p := models.Provider{Name: fmt.Sprint("node-", i), State: models.ProviderOnline, SeenAt: now.Add(24 * time.Hour), Version: 1, CreatedAt: now}
			check(q.CreateProvider(&p))
			for j := range 8 {
				check(q.CreateDevice(&models.Device{ProviderID: p.ID, UUID: fmt.Sprintf("GPU-%d-%d", i, j), Number: int64(j), Model: "NVIDIA H100", Cores: 100,
					MemoryMiB: 80_000, Simulated: true, Present: true, Mixed: true, Sharing: models.SharingTimeSlicing, Version: 1, CreatedAt: now}))
			}
		}
		most := models.Resources{GPUCores: 1e9, GPUMemoryMiB: 1e12, CPUMilli: 1e9, MemoryMiB: 1e9}
		for i := range 4 {
			p := models.Project{Name: fmt.Sprint("p", i), StartsAt: now, Priority: 50, Quota: most, Version: 1, CreatedAt: now}
			check(q.CreateProject(&p))
			r := models.Role{ProjectID: p.ID, Name: "r", Permission: models.PermissionMember, Limit: most, Version: 1, CreatedAt: now}
			check(q.CreateRole(&r))
			roles = append(roles, r)
		}
		return nil
	})
	for i := range n {
		u, role := storetest.User(b, s, fmt.Sprintf("u%d@example.org", i), false), roles[i%len(roles)]
		storetest.InTx(b, s, func(q *store.Queries) error {
			return q.CreateMember(&models.Member{ProjectID: role.ProjectID, UserID: u.ID, RoleID: role.ID, Version: 1, CreatedAt: now})
		})
		memberships, err := s.Read(b.Context()).MembershipsOf(u.ID, now)
		check(err)
		clients = append(clients, benchmarkClient{policies.Actor{User: u, Grants: policies.GrantsOf(memberships), At: now}, role.ProjectID})
	}
	return clients
}
