package files

import (
	"context"
	"errors"
	"time"
)

const (
	// spaceEvery is how often the free space of the shared directories is looked at.
	spaceEvery = 5 * time.Second
	// spaceStep is how much less of it there has to be for a measurement.
	spaceStep = 64 << 20
)

// watchSpace measures the projects in which something runs when the disk of the shared directories
// fills, so that what a notebook writes past a limit is found within seconds. Measuring takes at most a
// tenth of the time, whatever the trees.
func (s *Service) watchSpace(ctx context.Context) {
	most := int64(0)
	for ctx.Err() == nil {
		began := time.Now()
		if err := s.lookAtSpace(ctx, &most); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "the measurement of projects that fill the disk failed", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(spaceEvery, 9*time.Since(began))):
		}
	}
}

// lookAtSpace measures if there is less free space than the most since the last measurement.
func (s *Service) lookAtSpace(ctx context.Context, most *int64) error {
	free, _, err := s.space()
	if err != nil {
		return err
	}
	if *most = max(*most, free); *most-free < spaceStep {
		return nil
	}
	*most = free
	projects, err := s.Store.Read(ctx).ProjectsWithWork()
	errs := []error{err}
	for _, id := range projects {
		errs = append(errs, s.measureNow(ctx, id))
	}
	return errors.Join(append(errs, s.recordExcesses(ctx))...)
}

// measureNow measures a project from the beginning to the end, after what was begun before.
func (s *Service) measureNow(ctx context.Context, project int64) error {
	use, err := s.Store.Read(ctx).StorageUse(project)
	if err != nil {
		return err
	}
	for fresh := use.ScanPath == nil; ; {
		done, err := s.measure(ctx, project, 0)
		if err != nil || done && fresh {
			return err
		}
		fresh = fresh || done
	}
}
