package projects_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/models"
)

// amount is what the model counts: whole CPU cores, and GiB of memory.
type amount struct{ cpu, gib int64 }

func (a amount) resources() models.Resources {
	return models.Resources{CPUMilli: 1000 * a.cpu, MemoryMiB: 1024 * a.gib}
}

func amountOf(r models.Resources) amount { return amount{r.CPUMilli / 1000, r.MemoryMiB / 1024} }

func (a amount) add(b amount) amount { return amount{a.cpu + b.cpu, a.gib + b.gib} }
func (a amount) sub(b amount) amount { return amount{a.cpu - b.cpu, a.gib - b.gib} }
func (a amount) within(b amount) bool {
	return a.cpu <= b.cpu && a.gib <= b.gib
}

// How much of everything the model of a project has room for.
const (
	people = 5 // who may be members
	titles = 4 // names of roles
	seats  = 2 // names of a member's workspaces
)

// model are a project as the rules see it: a small second ledger that knows
// no database. They are compared by ==.
type model struct {
	quota   amount
	version int64
	roles   [titles]modelRole
	members [people]modelMember
	holds   [people][seats]modelWorkspace
}

// modelRole is a role; id 0 is none.
type modelRole struct {
	id, version int64
	limit       amount
}

// modelMember is a person's membership, which keeps its id beyond its end; id 0 is
// none.
type modelMember struct {
	id, version int64
	present     bool
	title       int
}

// modelWorkspace is a workspace that has not ended; id 0 is none.
type modelWorkspace struct {
	id       int64
	amount   amount
	stopping bool
}

func (b model) allocated() (sum amount) {
	for _, m := range b.members {
		if m.present {
			sum = sum.add(b.roles[m.title].limit)
		}
	}
	return sum
}

func (b model) inUseBy(person int) (sum amount) {
	for _, h := range b.holds[person] {
		sum = sum.add(h.amount)
	}
	return sum
}

func (b model) inUse() (sum amount) {
	for i := range b.holds {
		sum = sum.add(b.inUseBy(i))
	}
	return sum
}

// count is how many members are present and how many workspaces live.
func (b model) count() (members, live int64) {
	for i, m := range b.members {
		if m.present {
			members++
		}
		for _, h := range b.holds[i] {
			if h.id != 0 {
				live++
			}
		}
	}
	return members, live
}

// What may be done to a project.
const (
	found        = "found" // the state in which it begins
	createRole   = "create role"
	updateRole   = "update role"
	deleteRole   = "delete role"
	addMember    = "add member"
	updateMember = "update member"
	removeMember = "remove member"
	setQuota     = "set quota"
	launch       = "launch"
	stop         = "stop"
	end          = "end" // what the reconciler does when it is gone
	read         = "read"
)

// move is one thing that somebody does to a project.
type move struct {
	what      string
	project   int
	person    int
	title     int
	role      int64 // id, as the mover believes
	lease     int
	workspace int64 // id
	amount    amount
	version   int64 // that the mover has read; 0: does not mind
	model     model // in which it begins
}

// outcome is how a move ended: done, or refused with the numbers of the
// refusal.
type outcome struct {
	refused     models.Kind
	numbers     string
	id, version int64
	quota       amount // what a reader saw, from here on
	allocated   amount
	inUse       amount
	members     int64
	live        int64
}

func refusal(kind models.Kind) outcome { return outcome{refused: kind} }

// short is a refusal for lack of capacity; per resource that is exceeded, the
// numbers that it must name.
func short(cpu, gib bool, numbers func(pick func(amount) int64) []int64) outcome {
	var all []int64
	if cpu {
		all = append(all, numbers(func(a amount) int64 { return a.cpu })...)
	}
	if gib {
		all = append(all, numbers(func(a amount) int64 { return a.gib })...)
	}
	return outcome{refused: models.KindNoCapacity, numbers: plain(all)}
}

func plain(numbers []int64) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// exceeding is short when a is not within limit, naming what show gives.
func exceeding(a, limit amount, show func(pick func(amount) int64) []int64) []outcome {
	if a.within(limit) {
		return nil
	}
	return []outcome{short(a.cpu > limit.cpu, a.gib > limit.gib, show)}
}

// step tells whether a move may have ended like this in this state, and the
// state after it. A move that the rules admit may only have been done; one
// that they do not admit may only have been refused, for a reason that is
// true.
func (b model) step(m move, got outcome) (bool, model) {
	after, done, refusals := b.judge(m, got)
	if len(refusals) == 0 {
		return got == done, after
	}
	return slices.Contains(refusals, got), b
}

// judge gives the state after a move, how it ends when it is done, and every
// true reason to refuse it. got tells the ids that the database chose.
func (b model) judge(m move, got outcome) (after model, done outcome, refusals []outcome) {
	switch m.what {
	case found:
		return m.model, outcome{}, nil
	case createRole, updateRole, deleteRole:
		return b.judgeRole(m, got)
	case addMember, updateMember, removeMember:
		return b.judgeMember(m, got)
	case setQuota:
		return b.judgeQuota(m)
	case launch, stop, end:
		return b.judgeWorkspace(m, got)
	default: // read
		members, live := b.count()
		return b, outcome{version: b.version, quota: b.quota, allocated: b.allocated(), inUse: b.inUse(), members: members, live: live}, nil
	}
}

func (b model) judgeQuota(m move) (after model, done outcome, refusals []outcome) {
	if m.version != 0 && m.version != b.version {
		return b, done, []outcome{refusal(models.KindConflict)}
	}
	allocated, inUse := b.allocated(), b.inUse()
	refusals = append(exceeding(allocated, m.amount, func(pick func(amount) int64) []int64 { return []int64{pick(allocated)} }),
		exceeding(inUse, m.amount, func(pick func(amount) int64) []int64 { return []int64{pick(inUse)} })...)
	b.quota, b.version = m.amount, b.version+1
	return b, outcome{version: b.version}, refusals
}

// promises holds rule 1 in the state after a change of n members' peaks.
func (b model) capacity(after model, n int64) []outcome {
	more, left := after.allocated().sub(b.allocated()), b.quota.sub(b.allocated())
	return exceeding(after.allocated(), b.quota, func(pick func(amount) int64) []int64 {
		return []int64{pick(more), n, pick(left), pick(b.quota)}
	})
}

func (b model) judgeRole(m move, got outcome) (after model, done outcome, refusals []outcome) {
	old := b.roles[m.title]
	switch {
	case m.what == createRole && old.id != 0:
		refusals = []outcome{refusal(models.KindConflict)}
	case m.what != createRole && (old.id == 0 || old.id != m.role):
		return b, done, []outcome{refusal(models.KindNotFound)}
	case m.what == updateRole && m.version != 0 && m.version != old.version:
		return b, done, []outcome{refusal(models.KindConflict)}
	}
	var holders []int
	for i, p := range b.members {
		if p.present && p.title == m.title {
			holders = append(holders, i)
		}
	}
	slices.SortFunc(holders, func(i, j int) int { return cmp.Compare(b.members[i].id, b.members[j].id) })
	if m.what == deleteRole {
		if len(holders) > 0 {
			return b, done, []outcome{refusal(models.KindConflict)}
		}
		b.roles[m.title] = modelRole{}
		return b, done, nil
	}
	refusals = append(refusals, exceeding(m.amount, b.quota, func(pick func(amount) int64) []int64 { return []int64{pick(m.amount), pick(b.quota)} })...)
	after = b
	if m.what == createRole {
		after.roles[m.title] = modelRole{id: got.id, version: 1, limit: m.amount}
		return after, outcome{id: got.id, version: 1}, refusals
	}
	after.roles[m.title].limit, after.roles[m.title].version = m.amount, old.version+1
	refusals = append(refusals, b.capacity(after, int64(len(holders)))...)
	return after, outcome{id: old.id, version: old.version + 1}, append(refusals, b.holders(holders, m.amount)...)
}

// holders holds rule 2 against a lower peak: the refusal names what each
// holds who holds more.
func (b model) holders(list []int, limit amount) []outcome {
	var all []int64
	for _, i := range list {
		h := b.inUseBy(i)
		if h.cpu > limit.cpu {
			all = append(all, h.cpu)
		}
		if h.gib > limit.gib {
			all = append(all, h.gib)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []outcome{{refused: models.KindNoCapacity, numbers: plain(all)}}
}

func (b model) judgeMember(m move, got outcome) (after model, done outcome, refusals []outcome) {
	old, r, after := b.members[m.person], b.roles[m.title], b
	if m.what != addMember && !old.present {
		return b, done, []outcome{refusal(models.KindNotFound)}
	}
	if m.what == removeMember {
		after.members[m.person] = modelMember{id: old.id, version: old.version + 1}
		return after, done, nil
	}
	if m.what == updateMember && m.version != 0 && m.version != old.version {
		return b, done, []outcome{refusal(models.KindConflict)}
	}
	if r.id == 0 || r.id != m.role {
		return b, done, []outcome{refusal(models.KindInvalid)}
	}
	if m.what == addMember && old.present {
		// That another peak would not fit either is just as true.
		return b, done, append(b.another(r.limit), refusal(models.KindConflict))
	}
	after.members[m.person] = modelMember{id: cmp.Or(old.id, got.id), present: true, title: m.title, version: old.version + 1}
	inUse := b.inUseBy(m.person)
	refusals = append(b.capacity(after, 1), exceeding(inUse, r.limit, func(pick func(amount) int64) []int64 { return []int64{pick(inUse), pick(r.limit)} })...)
	return after, outcome{id: after.members[m.person].id, version: old.version + 1}, refusals
}

// another is what one more peak would exceed.
func (b model) another(limit amount) []outcome {
	left := b.quota.sub(b.allocated())
	return exceeding(b.allocated().add(limit), b.quota, func(pick func(amount) int64) []int64 {
		return []int64{pick(limit), 1, pick(left), pick(b.quota)}
	})
}

func (b model) judgeWorkspace(m move, got outcome) (after model, done outcome, refusals []outcome) {
	h := b.holds[m.person][m.lease]
	if m.what != launch {
		switch {
		case h.id == 0 || h.id != m.workspace || m.what == stop && h.stopping:
			return b, done, []outcome{refusal(models.KindConflict)}
		case m.what == stop:
			b.holds[m.person][m.lease].stopping = true
		default:
			b.holds[m.person][m.lease] = modelWorkspace{}
		}
		return b, done, nil
	}
	p := b.members[m.person]
	if !p.present {
		return b, done, []outcome{refusal(models.KindForbidden)}
	}
	limit, inUse := b.roles[p.title].limit, b.inUseBy(m.person)
	if none := least(limit, b.quota); none.cpu == 0 || none.gib == 0 {
		return b, done, []outcome{refusal(models.KindNoCapacity)} // whatever is requested
	}
	if !m.amount.within(limit) {
		return b, done, []outcome{refusal(models.KindInvalid)}
	}
	byLimit, byQuota := limit.sub(inUse), b.quota.sub(b.inUse())
	left := least(byLimit, byQuota)
	if h.id != 0 {
		refusals = append(refusals, refusal(models.KindConflict))
	}
	refusals = append(refusals, exceeding(m.amount, left, func(pick func(amount) int64) []int64 {
		if max(0, pick(byQuota)) < max(0, pick(byLimit)) { // the project's quota stops it
			return []int64{pick(b.inUse()), pick(m.amount), pick(b.quota), pick(left)}
		}
		return []int64{pick(inUse), pick(m.amount), pick(limit), pick(left)}
	})...)
	b.holds[m.person][m.lease] = modelWorkspace{id: got.id, amount: m.amount}
	return b, outcome{id: got.id}, refusals
}

func least(a, b amount) amount {
	return amount{max(0, min(a.cpu, b.cpu)), max(0, min(a.gib, b.gib))}
}
