package projects_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// past is a random history: shares of two projects on two models, some in reservations or
// still open, and prices that change.
type past struct {
	from        time.Time
	shares      []models.Share
	prices      []models.GPUPrice
	models      map[int64]string // of devices
	names       map[int64]string // of projects and, below 0, users
	preemptible int64            // a grant of a preemptible reservation
}

// the largest instant of a history, in tenths of a second.
const pastLength = 1200

func (o *world) newPast(t *testing.T, random *rand.Rand) past {
	t.Helper()
	p := past{from: o.Store.Now().Add(time.Hour).Truncate(time.Minute), models: map[int64]string{}, names: map[int64]string{}}
	o.Clock.Advance(2 * time.Hour)
	at := func(n int) time.Time { return p.from.Add(time.Duration(n) * 100 * time.Millisecond) }
	var members []models.Member
	for _, name := range []string{"vision", "speech"} {
		r := o.NewRole(t, o.NewProject(t, name, pooltest.Cores(1000)).ID, "engineer", models.PermissionMember, pooltest.Cores(10))
		for range 2 {
			m, u := o.NewMember(t, r)
			members = append(members, m)
			p.names[m.ProjectID], p.names[-u.ID] = name, u.Name
		}
	}
	var devices []int64
	for _, model := range []string{"H100", "B200", "B200"} {
		id := o.deviceOf(t, model)
		devices, p.models[id] = append(devices, id), model
	}
	grants := o.reservedBy(t, members[0], devices[0])
	p.preemptible = grants[1]
	for range 25 {
		m, begin := members[random.IntN(len(members))], random.IntN(pastLength)-100
		s := models.Share{DeviceID: devices[random.IntN(len(devices))], ProjectID: m.ProjectID, UserID: m.UserID, Cores: 1 + random.Int64N(100),
			Enforcement: models.EnforcedAdvisory, From: at(begin).Add(time.Duration(random.IntN(1000)) * time.Microsecond)}
		if random.IntN(4) > 0 {
			s.Until = new(at(begin + random.IntN(400)).Add(time.Duration(random.IntN(1000)) * time.Microsecond))
			if s.Until.Before(s.From) {
				s.Until = &s.From
			}
		}
		if random.IntN(3) == 0 {
			s.GrantID = &grants[random.IntN(len(grants))]
		}
		s.HolderID = o.holder(t, m)
		p.shares = append(p.shares, s)
	}
	for _, model := range []string{"H100", "B200"} {
		for _, b := range models.Billings {
			for n := random.IntN(300); n < pastLength && random.IntN(5) > 0; n += 1 + random.IntN(400) {
				p.prices = append(p.prices, models.GPUPrice{Model: model, Billing: b, Micros: random.Int64N(2_000_000), Currency: "EUR", ValidFrom: at(n), CreatedAt: at(n)})
			}
		}
	}
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		for i := range p.shares {
			if err := q.CreateShare(&p.shares[i]); err != nil {
				return err
			}
		}
		for i := range p.prices {
			if err := q.CreatePrice(&p.prices[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return p
}

// reservedBy are the grants of two reservations of a member, the second of which is preemptible.
func (o *world) reservedBy(t *testing.T, m models.Member, device int64) []int64 {
	t.Helper()
	var list []models.Reservation
	var grants [][]models.ReservationGrant
	for _, level := range []models.QoS{models.QoSStandard, models.QoSPreemptible} {
		list = append(list, models.Reservation{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, State: models.ReservationActive,
			Outcome: "granted", GPUs: 1, Cores: 1, Class: models.ClassNormal, QoS: level, TaskType: models.TaskBatch, StartsAt: o.Store.Now(),
			EndsAt: o.Store.Now(), Version: 1, CreatedAt: o.Store.Now()})
		grants = append(grants, []models.ReservationGrant{{DeviceID: device, Cores: 1, StartsAt: o.Store.Now(), EndsAt: o.Store.Now()}})
	}
	storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.CreateReservations(list, grants) })
	ids := models.Map(list, func(r models.Reservation) int64 { return r.ID })
	made, err := o.Store.Read(o.Ctx).GrantsOf(ids...)
	if err != nil {
		t.Fatal(err)
	}
	return models.Map(made, func(g models.GrantView) int64 { return g.ID })
}

// reserved is a grant of a reservation of a member.
func (o *world) reserved(t *testing.T, m models.Member, level models.QoS, g models.ReservationGrant) int64 {
	t.Helper()
	r := models.Reservation{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, State: models.ReservationActive, Outcome: "granted", GPUs: 1,
		Cores: g.Cores, Class: models.ClassNormal, QoS: level, TaskType: models.TaskBatch, StartsAt: g.StartsAt, EndsAt: g.EndsAt, Version: 1, CreatedAt: g.StartsAt}
	grants := []models.ReservationGrant{g}
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		return q.CreateReservations([]models.Reservation{r}, [][]models.ReservationGrant{grants})
	})
	made, err := o.Store.Read(o.Ctx).ReservedBy(m.ProjectID)
	if err != nil {
		t.Fatal(err)
	}
	return made[len(made)-1].ID
}

// What was reserved and not used is reported beside what was used, by every group but the holder, also of who used nothing.
func TestReservedUnused(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		member := func(project string) models.Member {
			m, _ := o.NewMember(t, o.NewRole(t, o.NewProject(t, project, pooltest.Cores(1000)).ID, "engineer", models.PermissionMember, pooltest.Cores(10)))
			return m
		}
		vision, speech, start := member("vision"), member("speech"), o.Store.Now().Truncate(time.Minute)
		at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
		h100, b200 := o.deviceOf(t, "H100"), o.deviceOf(t, "B200")
		used := o.reserved(t, vision, models.QoSStandard, models.ReservationGrant{DeviceID: h100, Cores: 50, StartsAt: at(0), EndsAt: at(60)})
		o.reserved(t, speech, models.QoSPreemptible, models.ReservationGrant{DeviceID: b200, Cores: 20, StartsAt: at(30), EndsAt: at(300)})
		holder := o.holder(t, vision)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			return q.CreateShare(&models.Share{DeviceID: h100, HolderID: holder, ProjectID: vision.ProjectID, UserID: vision.UserID, Cores: 30,
				GrantID: &used, Enforcement: models.EnforcedAdvisory, From: at(10), Until: new(at(40))})
		})
		o.Clock.Advance(90 * time.Minute)
		const minute = 60_000
		report := func(actor policies.Actor, project int64, from, until int, group string, page store.Page) projects.Accounting {
			in := projects.AccountingQuery{UsageQuery: projects.UsageQuery{From: at(from).Format(time.RFC3339), Until: at(until).Format(time.RFC3339)}, Group: group}
			got, err := o.Accounting(o.Ctx, actor, project, in, page)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		for _, c := range []struct {
			from, until    int
			vision, speech int64 // GPU core minutes
		}{{0, 90, 50*60 - 30*30, 20 * 60}, {30, 45, 50*15 - 30*10, 20 * 15}, {-60, 5, 50 * 5, 0}} {
			for _, group := range projects.Groups {
				got := report(o.Root, 0, c.from, c.until, group, store.Page{})
				var sum int64
				for _, r := range got.Rows {
					sum += r.ReservedUnusedMS
					want := map[string]int64{"vision": c.vision, "speech": c.speech, "H100": c.vision, "B200": c.speech, "reserved": c.vision, "preemptible": c.speech}
					if minutes, known := want[r.Name]; known && r.ReservedUnusedMS != minutes*minute || r.Name == "B200" && !r.Simulated {
						t.Errorf("from %d by %s: %+v", c.from, group, r)
					}
				}
				if want := (c.vision + c.speech) * minute; got.Total.ReservedUnusedMS != want || group != projects.GroupHolder && sum != want {
					t.Errorf("from %d by %s: the rows are %d, and the total is %d, want %d", c.from, group, sum, got.Total.ReservedUnusedMS, want)
				}
			}
		}
		first := report(o.Root, 0, 0, 90, projects.GroupProject, store.Page{Limit: 1})
		second := report(o.Root, 0, 0, 90, projects.GroupProject, store.Page{Limit: 1, After: first.Next})
		if len(first.Rows) != 1 || len(second.Rows) != 1 || second.Next != 0 || second.Rows[0].Name != "speech" || second.Rows[0].CoreMS != 0 {
			t.Errorf("the pages are %+v and %+v", first.Rows, second.Rows)
		}
		user, err := o.Store.Read(o.Ctx).User(speech.UserID)
		if err != nil {
			t.Fatal(err)
		}
		if own := report(o.Actor(t, user), speech.ProjectID, 0, 90, projects.GroupMember, store.Page{}); !own.OwnOnly || len(own.Rows) != 1 ||
			own.Total.ReservedUnusedMS != 20*60*minute {
			t.Errorf("of their own, a member sees %+v", own)
		}
	})
}

// deviceOf adds a machine with one GPU of a model.
func (o *world) deviceOf(t *testing.T, model string) int64 {
	t.Helper()
	d := models.Device{UUID: policies.NewSecret(), Model: model, MemoryMiB: 81_920, Simulated: model == "B200", Present: true, Cores: 100, Version: 1,
		Sharing: models.SharingTimeSlicing, CreatedAt: o.Store.Now()}
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		p := models.Provider{Name: policies.NewSecret(), State: models.ProviderOnline, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()}
		if err := q.CreateProvider(&p); err != nil {
			return err
		}
		d.ProviderID = p.ID
		return q.CreateDevice(&d)
	})
	return d.ID
}

// holder is a workspace of a member.
func (o *world) holder(t *testing.T, m models.Member) int64 {
	t.Helper()
	return o.NewWorkspace(t, m, models.Demand{}).HolderID
}

// counted is what the oracle finds of one group.
type counted struct {
	coreMS, reserved, unpriced int64
	cost                       big.Int // millionths × milliseconds
	simulated                  bool
}

// micros rounds the cost as a row does, halves up.
func (c *counted) micros() int64 {
	twice := new(big.Int).Lsh(&c.cost, 1)
	return twice.Add(twice, big.NewInt(3_600_000)).Div(twice, big.NewInt(7_200_000)).Int64()
}

// count looks at every millisecond of a span: which shares there are, and what each costs.
func (p past) count(from, until time.Time, of func(models.Share) (string, bool)) map[string]*counted {
	all := map[string]*counted{}
	for _, s := range p.shares {
		name, wanted := of(s)
		if !wanted {
			continue
		}
		c := all[name]
		if c == nil {
			c = &counted{}
		}
		for ms := from.UnixMilli(); ms < until.UnixMilli(); ms++ {
			if s.From.UnixMilli() > ms || s.Until != nil && s.Until.UnixMilli() <= ms {
				continue
			}
			all[name] = c
			c.tick(p, s, ms)
		}
	}
	return all
}

// tick adds a millisecond of a share.
func (c *counted) tick(p past, s models.Share, ms int64) {
	model, billing := p.models[s.DeviceID], models.BillingOnDemand
	if s.GrantID != nil {
		billing, c.reserved = p.billingOf(s), c.reserved+s.Cores
	}
	c.coreMS, c.simulated = c.coreMS+s.Cores, c.simulated || model == "B200"
	var latest *models.GPUPrice
	for i, price := range p.prices {
		if price.Model == model && price.Billing == billing && price.ValidFrom.UnixMilli() <= ms && (latest == nil || price.ValidFrom.After(latest.ValidFrom)) {
			latest = &p.prices[i]
		}
	}
	if latest == nil {
		c.unpriced += s.Cores
		return
	}
	c.cost.Add(&c.cost, big.NewInt(s.Cores*latest.Micros))
}

// TestAccountingByTheMillisecond compares sums of random histories in both databases with a
// count of every millisecond.
func TestAccountingByTheMillisecond(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		random := rand.New(rand.NewPCG(15, 9))
		p := o.newPast(t, random)
		for range 6 {
			from := p.from.Add(time.Duration(random.IntN(60_000)) * time.Millisecond)
			until := from.Add(time.Duration(1+random.IntN(20_000)) * time.Millisecond)
			for _, group := range projects.Groups {
				in := projects.AccountingQuery{UsageQuery: projects.UsageQuery{From: from.Format(time.RFC3339Nano), Until: until.Format(time.RFC3339Nano)}, Group: group}
				got, err := o.Accounting(o.Ctx, o.Root, 0, in, store.Page{})
				if err != nil {
					t.Fatal(err)
				}
				p.compare(t, got, func(s models.Share) (string, bool) { return p.groupOf(s, group), true })
				in.AccountingFilter = p.filter(random)
				if got, err = o.Accounting(o.Ctx, o.Root, 0, in, store.Page{}); err != nil {
					t.Fatal(err)
				}
				p.compare(t, got, func(s models.Share) (string, bool) { return p.groupOf(s, group), p.passes(s, in.AccountingFilter) })
				if named := got.Member != ""; named != (in.UserID != 0 && got.Total.CoreMS > 0) || named && got.Member != p.names[-in.UserID] {
					t.Errorf("user %d, with %d, is named %q", in.UserID, got.Total.CoreMS, got.Member)
				}
			}
		}
	})
}

// filter is a random one; each part of it is that of some share.
func (p past) filter(random *rand.Rand) (f projects.AccountingFilter) {
	some := func() models.Share { return p.shares[random.IntN(len(p.shares))] }
	if random.IntN(2) == 0 {
		f.UserID = some().UserID
	}
	if random.IntN(2) == 0 {
		f.Model = p.models[some().DeviceID]
	}
	if random.IntN(3) == 0 {
		f.Billing = p.billingOf(some())
	}
	if random.IntN(3) == 0 {
		f.Holder = []models.HolderKind{models.HolderWorkspace, models.HolderWorkspace, models.HolderRun}[random.IntN(3)]
	}
	return f
}

func (p past) passes(s models.Share, f projects.AccountingFilter) bool {
	return (f.UserID == 0 || f.UserID == s.UserID) && (f.Model == "" || f.Model == p.models[s.DeviceID]) &&
		(f.Billing == "" || f.Billing == p.billingOf(s)) && (f.Holder == "" || f.Holder == models.HolderWorkspace)
}

// groupOf is the name of the group of a share.
func (p past) groupOf(s models.Share, group string) string {
	switch {
	case group == projects.GroupProject:
		return p.names[s.ProjectID]
	case group == projects.GroupMember:
		return p.names[-s.UserID]
	case group == projects.GroupModel:
		return p.models[s.DeviceID]
	case group == projects.GroupHolder:
		return string(models.HolderWorkspace)
	default:
		return string(p.billingOf(s))
	}
}

// billingOf is the billing model of a share.
func (p past) billingOf(s models.Share) models.Billing {
	switch {
	case s.GrantID == nil:
		return models.BillingOnDemand
	case *s.GrantID == p.preemptible:
		return models.BillingPreemptible
	default:
		return models.BillingReserved
	}
}

// compare checks the rows, and that their sums are the total and the sum of the steps.
func (p past) compare(t *testing.T, got projects.Accounting, of func(models.Share) (string, bool)) {
	t.Helper()
	want := p.count(got.From, got.Until, of)
	if len(want) != len(got.Rows) {
		t.Errorf("by %s there are %d rows, not %d: %+v", got.Group, len(got.Rows), len(want), got.Rows)
	}
	var sum, reserved, unpriced, inSteps int64
	for _, r := range got.Rows {
		c := want[r.Name]
		if c == nil {
			t.Errorf("by %s: there is no %q", got.Group, r.Name)
			continue
		}
		if r.CoreMS != c.coreMS || r.ReservedMS != c.reserved || r.UnpricedMS != c.unpriced || r.Cost != c.micros() || r.Simulated != c.simulated {
			t.Errorf("by %s: %+v, not %+v and %d", got.Group, r, c, c.micros())
		}
		sum, reserved, unpriced = sum+r.CoreMS, reserved+r.ReservedMS, unpriced+r.UnpricedMS
	}
	whole := p.count(got.From, got.Until, func(s models.Share) (string, bool) { _, wanted := of(s); return "", wanted })[""]
	if whole == nil {
		whole = &counted{}
	}
	for _, s := range got.Steps {
		inSteps += s.CoreMS
	}
	if total := got.Total; total.CoreMS != sum || total.ReservedMS != reserved || total.UnpricedMS != unpriced || inSteps != sum || total.Cost != whole.micros() {
		t.Errorf("by %s: the total is %+v; the rows are %d, %d and %d, the steps %d, the cost %d", got.Group, total, sum, reserved, unpriced, inSteps, whole.micros())
	}
}

// TestAccountingIsWithinTheProject shows managers their project, and members their own
// shares, page by page.
func TestAccountingIsWithinTheProject(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.newPast(t, rand.New(rand.NewPCG(3, 4)))
		share := p.shares[0]
		in := projects.AccountingQuery{UsageQuery: projects.UsageQuery{From: p.from.Format(time.RFC3339), Until: p.from.Add(time.Minute).Format(time.RFC3339)}}
		member, err := o.Store.Read(o.Ctx).User(share.UserID)
		if err != nil {
			t.Fatal(err)
		}
		_, manager := o.NewMember(t, o.NewRole(t, share.ProjectID, "lead", models.PermissionManager, pooltest.Cores(10)))
		own, err := o.Accounting(o.Ctx, o.Actor(t, member), share.ProjectID, in, store.Page{})
		if err != nil || !own.OwnOnly {
			t.Fatal(own, err)
		}
		p.compare(t, own, func(s models.Share) (string, bool) {
			return p.names[-s.UserID], s.UserID == member.ID && s.ProjectID == share.ProjectID
		})
		all, err := o.Accounting(o.Ctx, o.Actor(t, manager), share.ProjectID, in, store.Page{})
		if err != nil || all.OwnOnly || len(all.Rows) != 2 {
			t.Fatal(all, err)
		}
		p.compare(t, all, func(s models.Share) (string, bool) { return p.names[-s.UserID], s.ProjectID == share.ProjectID })
		second, err := o.Accounting(o.Ctx, o.Actor(t, manager), share.ProjectID, in, store.Page{After: all.Rows[0].Key, Limit: 1})
		if err != nil || len(second.Rows) != 1 || second.Rows[0].Key != all.Rows[1].Key || second.Rows[0].CoreMS != all.Rows[1].CoreMS || second.Total.CoreMS != all.Total.CoreMS {
			t.Errorf("the second page is %+v, %v", second, err)
		}
		pooltest.WantError(t, pooltest.Error(o.Accounting(o.Ctx, o.Actor(t, manager), 0, in, store.Page{})), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Accounting(o.Ctx, o.Actor(t, o.NewPerson(t)), share.ProjectID, in, store.Page{})), models.KindNotFound)
		in.Group = "color"
		pooltest.WantError(t, pooltest.Error(o.Accounting(o.Ctx, o.Root, 0, in, store.Page{})), models.KindInvalid, "group")
	})
}
