package models

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gorm.io/gorm"
)

const (
	lease    = 6 * time.Second         // after a beat, in which a server may pass bytes on
	patience = 8 * time.Second         // without a beat, after which the others go on without it
	beatTime = 1500 * time.Millisecond // from one beat to the next
	lookTime = 100 * time.Millisecond  // between looks while nothing can be heard
	soleLook = 250 * time.Millisecond  // the same for the only server: commands may work on its database
)

// Server is a row of the servers that pass bytes on.
type Server struct {
	ID   string `gorm:"primaryKey"`
	Beat int64  // goes up as long as the server lives
	Done int64  // the last revocation that it has carried out
}

// Seat is this process's place among the servers of one portal. While it
// holds, what others revoke is ended here before their calls return.
//
// A seat is lost when its beats stop, and that is measured without comparing
// clocks: this server stops at the end of its lease after its last beat, and
// the others forget it a good while after they saw that beat.
type Seat struct {
	store *Store
	sole  bool
	wake  chan struct{}
	until atomic.Int64 // of Store.Elapsed, in nanoseconds: the end of the lease

	running sync.Mutex // held while Run does
	// Of Run alone:
	seated     bool // there is a row, as far as known
	beat, done int64
	peers      watch
	ill        bool // the last turn failed
}

// Join takes a seat, before anything is served. The sole server of a database
// (its file's, or by its claim) needs no lease.
func (s *Store) Join(ctx context.Context, sole bool) (*Seat, error) {
	m := &Seat{store: s, sole: sole, wake: make(chan struct{}, 1), peers: watch{}}
	if sole {
		if err := s.write.WithContext(ctx).Where("id <> ?", s.origin).Delete(&Server{}).Error; err != nil {
			return nil, err
		}
	}
	s.OnChange(func(topics []string) {
		if slices.Contains(topics, revocationsTopic) || slices.Contains(topics, AnythingMayHaveChanged) {
			m.look()
		}
	})
	return m, m.sit(s.write.WithContext(ctx))
}

// Holds tells whether bytes may be passed on now. It is cheap enough to be
// asked for each piece.
func (m *Seat) Holds() bool { return m.left() > 0 }

func (m *Seat) left() time.Duration {
	return time.Duration(m.until.Load()) - m.store.Elapsed()
}

func (m *Seat) look() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// sit takes a seat, perhaps again. What was open before belongs to none: a
// right may have gone meanwhile without this server being waited for.
func (m *Seat) sit(db *gorm.DB) error {
	sent := m.store.Elapsed()
	m.beat++ // never the same again, so that nobody takes it for silent
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Raw("SELECT COALESCE(MAX(number), 0) FROM revocations").Scan(&m.done).Error; err != nil {
			return err
		}
		return tx.Save(&Server{ID: m.store.origin, Beat: m.beat, Done: m.done}).Error
	})
	if m.seated = err == nil; m.seated {
		m.store.cut()
		m.extend(sent)
	}
	return err
}

// extend lets the lease begin at the moment before the beat was sent.
func (m *Seat) extend(sent time.Duration) {
	if m.sole {
		m.until.Store(math.MaxInt64)
		return
	}
	m.until.Store(int64(sent + lease))
}

// Run keeps the seat and carries out what other servers revoke, until ctx
// ends. trouble hears once when that begins to fail.
func (m *Seat) Run(ctx context.Context, trouble func(error)) {
	m.running.Lock()
	defer m.running.Unlock()
	var guard sync.WaitGroup
	defer guard.Wait()
	guard.Go(func() { m.guard(ctx) })
	for ctx.Err() == nil {
		err := m.store.apart(ctx, m.sole, func(db *gorm.DB) error { return m.stay(ctx, db) })
		if err != nil && ctx.Err() == nil && !m.ill {
			trouble(err)
		}
		m.ill = true
		m.await(ctx)
	}
}

// stay takes turns until one fails.
func (m *Seat) stay(ctx context.Context, db *gorm.DB) error {
	for ctx.Err() == nil {
		if err := m.turn(ctx, db); err != nil {
			return err
		}
		m.ill = false
		m.await(ctx)
	}
	return nil
}

// await lets the time pass until the next turn.
func (m *Seat) await(ctx context.Context) {
	pause := lookTime
	switch {
	case m.ill:
	case m.store.listening.Load():
		pause = beatTime
	case m.sole:
		pause = soleLook
	}
	select {
	case <-ctx.Done():
	case <-m.wake:
	case <-time.After(pause):
	}
}

// turn carries out what is new, and says so with a beat.
func (m *Seat) turn(ctx context.Context, db *gorm.DB) error {
	ctx, cancel := context.WithTimeout(ctx, lease/2)
	defer cancel()
	db = db.WithContext(ctx)
	if !m.seated {
		return m.sit(db)
	}
	var list []Revocation
	if err := db.Where("number > ?", m.done).Order("number").Find(&list).Error; err != nil {
		return err
	}
	var ties []string
	for _, r := range list {
		if m.done = r.Number; r.Origin != m.store.origin { // one's own were carried out at once
			ties = append(ties, strings.Fields(r.Ties)...)
		}
	}
	m.store.carryOut(ctx, ties)
	if m.sole && len(ties) == 0 { // nobody waits
		return nil
	}
	return m.strike(db)
}

// strike beats, and looks whether the others do.
func (m *Seat) strike(db *gorm.DB) error {
	sent := m.store.Elapsed()
	m.beat++
	res := db.Model(&Server{}).Where("id = ?", m.store.origin).Updates(map[string]any{"beat": m.beat, "done": m.done})
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected == 0 { // the others went on without this one
		m.seated = false
		return m.sit(db)
	}
	m.extend(sent)
	others, err := behind(db, m.store.origin, math.MaxInt64)
	if err != nil || m.sole {
		return err
	}
	return dismiss(db, m.peers.silent(others, m.store.Elapsed()))
}

// guard cuts everything when the lease has ended.
func (m *Seat) guard(ctx context.Context) {
	for ctx.Err() == nil {
		left := m.left()
		if left <= 0 {
			m.store.cut()
			left = lookTime
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(left, lookTime)):
		}
	}
}

// Leave gives the seat up, so that nobody waits for this server. Run must
// have been told to end, and nothing may be open any more.
func (m *Seat) Leave(ctx context.Context) error {
	m.running.Lock()
	defer m.running.Unlock()
	m.until.Store(0)
	return m.store.write.WithContext(ctx).Where("id = ?", m.store.origin).Delete(&Server{}).Error
}

// apart runs fn on a connection of its own: a beat must not wait in line
// behind requests. The sole server has a single one to write by.
func (s *Store) apart(ctx context.Context, sole bool, fn func(*gorm.DB) error) error {
	if sole {
		return fn(s.write.WithContext(ctx))
	}
	return s.write.WithContext(ctx).Connection(fn)
}

// behind lists the other servers that have not carried out a revocation yet.
func behind(db *gorm.DB, origin string, number int64) (list []Server, err error) {
	return list, db.Where("id <> ? AND done < ?", origin, number).Find(&list).Error
}

// dismiss takes their seats from servers that have been silent for too long,
// unless they have beaten after all.
func dismiss(db *gorm.DB, silent []Server) error {
	var errs []error
	for _, v := range silent {
		errs = append(errs, db.Where("id = ? AND beat = ?", v.ID, v.Beat).Delete(&Server{}).Error)
	}
	return errors.Join(errs...)
}

// watch is when each server's beat was first seen as it is.
type watch map[string]sighting

type sighting struct {
	beat int64
	at   time.Duration // of Store.Elapsed
}

// silent picks the servers whose beat has stood still for longer than their
// lease can last.
func (w watch) silent(list []Server, now time.Duration) (silent []Server) {
	for _, v := range list {
		seen, known := w[v.ID]
		switch {
		case !known || seen.beat != v.Beat:
			w[v.ID] = sighting{v.Beat, now}
		case now-seen.at > patience:
			silent = append(silent, v)
		}
	}
	for id := range w {
		if !slices.ContainsFunc(list, func(v Server) bool { return v.ID == id }) {
			delete(w, id)
		}
	}
	return silent
}

// elapsed is a clock that nobody sets and that goes on while the machine
// sleeps.
func elapsed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Duration(math.MaxInt64) // no lease holds
	}
	return time.Duration(t.Nano())
}
