package files

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
)

// scarcePart and scarceBytes are the part of the disk, and the bytes, below which what is free is
// scarce, whichever is less.
const scarcePart, scarceBytes = 20, 64 << 30

// recordExcesses records who exceeds a storage limit, or no longer does, and tells them.
// Notebooks can write past a limit, and limits change. While the disk is nearly full, there is no
// grace, also for those to whom it was given.
func (s *Service) recordExcesses(ctx context.Context) error {
	s.recording.Lock()
	defer s.recording.Unlock()
	q, grace := s.Store.Read(ctx), s.Grace
	list, err1 := q.ChangedStorageExcesses()
	scarce, err2 := s.scarce()
	errs := []error{err1, err2}
	if scarce {
		graced, err := q.StorageExcessesUntil(q.Now())
		list, errs, grace = append(list, graced...), append(errs, err), 0
	}
	for _, e := range list {
		errs = append(errs, s.Store.InTx(ctx, func(q *store.Queries) error {
			if !e.Over() {
				return q.SetStorageReadOnly(e, nil)
			}
			at := q.Now().Add(grace)
			return errors.Join(q.SetStorageReadOnly(e, &at), notifyExcess(q, e, at, scarce))
		}))
	}
	return errors.Join(errs...)
}

// notifyExcess tells a member, or all who can launch in a project, until when to delete files, or that
// it is too late.
func notifyExcess(q *store.Queries, e models.StorageExcess, at time.Time, late bool) error {
	n := models.Notification{Kind: models.NotificationStorageExceeded, Link: "/projects/" + idName(e.ProjectID),
		Data: models.StorageNotification{ProjectID: e.ProjectID, MemberID: e.MemberID, UsedBytes: e.Used, LimitMiB: e.LimitMiB,
			ReadOnlyAt: at.UTC()}}
	used, limit, day := inMiB(e.Used), inMiB(e.LimitMiB*mebibyte), models.Instant{At: at}
	if e.MemberID != 0 {
		n.Text = models.Say("Your files in the project %s use %s; your limit is %s. Delete files before %s: from then on, workspaces mount the shared directories read-only.", e.ProjectName, used, limit, day)
		if late {
			n.Text = models.Say("Your files in the project %s use %s; your limit is %s, and the disk is nearly full. Workspaces mount the shared directories read-only until you delete files.", e.ProjectName, used, limit)
		}
		return q.Notify([]int64{e.UserID}, n)
	}
	to, err := q.UsersPermitted(e.ProjectID, models.WorkspaceLaunch)
	if err != nil {
		return err
	}
	n.Text = models.Say("The files of the project %s use %s; its quota is %s. Delete files before %s: from then on, workspaces mount the shared directories read-only.", e.ProjectName, used, limit, day)
	if late {
		n.Text = models.Say("The files of the project %s use %s; its quota is %s, and the disk is nearly full. Workspaces mount the shared directories read-only until files are deleted.", e.ProjectName, used, limit)
	}
	return q.Notify(to, n)
}

// scarce reports whether the disk of the shared directories is nearly full.
func (s *Service) scarce() (bool, error) {
	free, size, err := s.space()
	return err == nil && free < min(size/scarcePart, scarceBytes), err
}
