package storagetest_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/storage"
	"weir/storage/files"
	"weir/storage/rules"
	"weir/storage/storagetest"
)

// IDs that nobody has on this machine.
const sandboxUser = 64321

var memberIDs = rules.IDRange{First: 1_900_600_000, Last: 1_900_699_999}

// directories makes shared directories in which members have IDs, if this process can
// give them.
func directories(t *testing.T, s *store.Store) (*storage.Directories, *storage.Verdicts) {
	t.Helper()
	verdicts, err1 := storage.NewVerdicts(s)
	dirs, err2 := storage.New(t.TempDir(), sandboxUser, sandboxUser, verdicts)
	err := errors.Join(err1, err2)
	if err == nil && os.Geteuid() == 0 {
		err = dirs.UseIDs(t.Context(), memberIDs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dirs, verdicts
}

// service tries operations by the file service.
type service struct {
	*files.Service
	*storagetest.World
}

func newService(t *testing.T, w *storagetest.World, verdicts *storage.Verdicts) service {
	t.Helper()
	access, err1 := policies.NewAccess()
	root, err2 := w.Dirs.OpenRoot()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return service{files.New(files.Config{Store: w.Store, Accounts: policies.NewAccounts(w.Store, access), Access: access, Verdicts: verdicts, Root: root, Owner: w.Dirs.Owner,
		Logger: slog.New(slog.DiscardHandler), Settings: files.Settings{TrashAge: time.Hour, VersionAge: time.Hour, Archive: files.DefaultArchiveLimits}}), w}
}

func (s service) try(t *testing.T, who string, op storagetest.Op, path string) bool {
	t.Helper()
	err := s.do(t.Context(), policies.Actor{User: s.Users[who]}, op, models.FilePath(path))
	switch models.KindOf(err) {
	case models.KindNotFound, models.KindForbidden:
		return false
	}
	if err != nil {
		t.Fatalf("%s %s %s: %v", who, op, path, err)
	}
	return true
}

func (s service) do(ctx context.Context, actor policies.Actor, op storagetest.Op, path models.FilePath) (err error) {
	switch op {
	case storagetest.List:
		l, err := s.List(ctx, actor, s.Project, files.ListQuery{Path: path, Limit: 100})
		if err == nil && !slices.ContainsFunc(l.Entries, func(e files.Entry) bool { return e.Name == "file" }) {
			err = models.NotFound("file")
		}
		return err
	case storagetest.Read:
		_, _, err = s.Checksum(ctx, actor, s.Project, path)
	case storagetest.Download:
		c, err := s.Open(ctx, actor, s.Project, path, false)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = io.ReadAll(c.File)
		return err
	case storagetest.Write, storagetest.Create:
		_, err = s.Service.Write(ctx, actor, s.Project, path, strings.NewReader("by the service"), -1, files.Condition{})
	case storagetest.Mkdir:
		_, err = s.MakeDirectory(ctx, actor, s.Project, path)
	case storagetest.Remove:
		_, err = s.Delete(ctx, actor, s.Project, path, files.Condition{})
	}
	return err
}

func TestServiceFollowsTheRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		dirs, verdicts := directories(t, s)
		w := storagetest.New(t, s, dirs)
		storagetest.Run(t, w, storagetest.Medium{Try: newService(t, w, verdicts).try})
	})
}
