package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
)

const (
	// correctEvery is how often the files of projects in use are corrected, at most.
	correctEvery = time.Minute
	// correctShare: a pass takes at most this part of the time.
	correctShare = 20
)

// Owners keeps the owners and permissions of files right. Make one with
// [Directories.Owners].
type Owners struct {
	*Directories
	log *slog.Logger
	due map[int64]time.Time // by project, when its files are corrected again
}

// Owners returns what keeps the owners and permissions right.
func (d *Directories) Owners(log *slog.Logger) *Owners {
	return &Owners{d, log, map[int64]time.Time{}}
}

// Run takes the files of projects over, and corrects what workspaces have created, until
// ctx ends. Only the leader may run it.
func (o *Owners) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.Pass(ctx); err != nil && ctx.Err() == nil {
			o.log.ErrorContext(ctx, "cannot set the owners of shared files", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(correctEvery):
		}
	}
}

// Pass takes over what can be taken over, and corrects the files of projects in use that
// are due.
func (o *Owners) Pass(ctx context.Context) error {
	if o.ids.Empty() {
		return nil
	}
	q := o.verdicts.store.Read(ctx)
	takeovers, err := q.FileTakeovers()
	errs := []error{err}
	waiting := map[int64]bool{}
	for _, t := range takeovers {
		waiting[t.ProjectID] = true
		if err := o.takeOver(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("project %d: %w", t.ProjectID, err))
		}
	}
	inUse, err := q.ProjectsInUse()
	errs = append(errs, err)
	for _, project := range inUse {
		if _, known := o.due[project]; !known {
			o.due[project] = time.Time{} // at once
		}
	}
	for project, due := range o.due {
		if waiting[project] || o.now().Before(due) {
			continue
		}
		begun := o.now()
		if err := o.Correct(ctx, project); err != nil {
			errs = append(errs, fmt.Errorf("project %d: %w", project, err))
		}
		o.due[project] = o.now().Add(max(correctEvery, correctShare*o.now().Sub(begun)))
		if !slices.Contains(inUse, project) {
			delete(o.due, project) // this was for what its last workspace has left
		}
	}
	return errors.Join(errs...)
}

// Correct gives all files of a project their owners and permissions.
func (o *Owners) Correct(ctx context.Context, project int64) error {
	return o.correct(ctx, project, "", func(string) error { return nil })
}

func (o *Owners) now() time.Time { return o.verdicts.store.Now() }

// takeOver gives the files of a project the IDs of its members. Workspaces that run as
// the one owner of before would lose access: it begins when there are none. What starts
// from then on has IDs of its own, and can write what is done already.
func (o *Owners) takeOver(ctx context.Context, t store.FileTakeover) error {
	if t.BegunAt == nil {
		if begun, err := o.begin(ctx, &t); !begun {
			return err
		}
	}
	o.log.InfoContext(ctx, "taking over files", "project", t.ProjectID, "after", t.Cursor)
	err := o.correct(ctx, t.ProjectID, string(t.Cursor), func(cursor string) error {
		t.Cursor = models.FilePath(cursor)
		return o.verdicts.store.InTx(ctx, func(q *store.Queries) error { return q.SaveFileTakeover(t) })
	})
	if err != nil {
		return err
	}
	return o.verdicts.store.InTx(ctx, func(q *store.Queries) error { return q.DeleteFileTakeover(t.ProjectID) })
}

// begin records that the takeover begins, unless workspaces of the project run.
func (o *Owners) begin(ctx context.Context, t *store.FileTakeover) (begun bool, err error) {
	err = o.verdicts.store.InTx(ctx, func(q *store.Queries) error {
		if _, err := q.LockProject(store.AllProjects, t.ProjectID); err != nil {
			return models.IgnoreNotFound(err) // deleted meanwhile
		}
		inUse, err := q.ProjectsInUse()
		if err != nil || slices.Contains(inUse, t.ProjectID) {
			return err
		}
		t.BegunAt, begun = new(q.Now()), true
		return q.SaveFileTakeover(*t)
	})
	return begun && err == nil, err
}
