package storage

import (
	"context"
	"slices"
	"strings"
	"sync"

	"weir/models"
	"weir/models/store"
	"weir/storage/rules"
)

// Verdicts decides what users may do with files. Nothing else does.
type Verdicts struct {
	store   *store.Store
	decider *decider
	sets    *store.Cache[int64, *ruleSet] // by project
}

// ruleSet is a project's rules, with the verdicts that were already made by them.
type ruleSet struct {
	*rules.Set
	decider *decider

	mu    sync.Mutex
	users map[int64]*User // by member; 0 for all who are none
}

const (
	maxRuleSets = 1024
	maxUsers    = 1024 // of a project
	maxVerdicts = 4096 // of a user
)

// NewVerdicts returns the verdicts by the rules in a store.
func NewVerdicts(db *store.Store) (*Verdicts, error) {
	d, err := newDecider(db.Log)
	if err != nil {
		return nil, err
	}
	return &Verdicts{db, d, store.NewCache[int64, *ruleSet](db, maxRuleSets)}, nil
}

// Of returns the verdicts for a user of a project, by its present rules.
func (v *Verdicts) Of(ctx context.Context, u models.DirectoryUser) (*User, error) {
	s, err := v.sets.Get(ctx, u.ProjectID, func(ctx context.Context) (*ruleSet, store.Validity, error) {
		rows, err := v.store.Read(ctx).FileRules(u.ProjectID)
		return v.setOf(u.ProjectID, rows), store.Validity{Keys: []string{store.RevocationKey(store.FilesOf, u.ProjectID)}}, err
	})
	if err != nil {
		return nil, err
	}
	return s.user(u), nil
}

// setOf is the set of other rules than those in the store, for a preview.
func (v *Verdicts) setOf(project int64, rows []models.FileRule) *ruleSet {
	return &ruleSet{Set: rules.NewSet(project, rows), decider: v.decider, users: map[int64]*User{}}
}

// user returns the verdicts for a user, those of before if nothing about the user has
// changed.
func (s *ruleSet) user(u models.DirectoryUser) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.users[u.MemberID]; known != nil && same(known.DirectoryUser, u) {
		return known
	}
	if len(s.users) >= maxUsers {
		clear(s.users)
	}
	n := &User{DirectoryUser: u, Rules: s.Set, decider: s.decider, subjects: rules.SubjectsOf(u), verdicts: map[string]rules.Verdict{}}
	s.users[u.MemberID] = n
	return n
}

func same(a, b models.DirectoryUser) bool {
	return a.ProjectID == b.ProjectID && a.MemberID == b.MemberID && a.RoleID == b.RoleID && a.Ended == b.Ended && a.Left == b.Left &&
		a.Exceeded == b.Exceeded && a.AwaitsTakeover == b.AwaitsTakeover &&
		slices.Equal(a.Inherits, b.Inherits) && slices.Equal(a.Curates, b.Curates)
}

// User decides about files for one user by the rules of one moment.
type User struct {
	models.DirectoryUser
	Rules    *rules.Set
	decider  *decider
	subjects rules.Subjects

	mu       sync.RWMutex
	verdicts map[string]rules.Verdict // by the path that decides
}

// Verdict decides about a clean path. All paths between two with rules have the same
// verdict, so it is made once for them.
func (u *User) Verdict(path string) rules.Verdict {
	for strings.Count(path, "/") > 3 && !u.Rules.HasRules(path) {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	u.mu.RLock()
	v, ok := u.verdicts[path]
	u.mu.RUnlock()
	if ok {
		return v
	}
	v = u.decider.verdict(u.Rules, u.DirectoryUser, &u.subjects, path)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.verdicts) >= maxVerdicts {
		clear(u.verdicts)
	}
	u.verdicts[strings.Clone(path)] = v
	return v
}

// Explain lists the rules that apply to a path, the one that decides first.
func (u *User) Explain(path string) (list []rules.Rule) {
	found := u.Rules.Applicable(nil, &u.subjects, path)
	for _, r := range u.Rules.Layout(found, u.DirectoryUser, &u.subjects, path) {
		list = append(list, *r)
	}
	return list
}
