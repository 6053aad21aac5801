package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/storage"
	"weir/storage/rules"
)

// separateMembers gives members and projects IDs of their own, if this process can.
func (p *portal) separateMembers(ctx context.Context, dirs *storage.Directories) error {
	r := p.idRange()
	if !r.Empty() && !namespaced() {
		if err := checkIDs(r, int64(p.cfg.SandboxUID), idTables); err != nil {
			return fmt.Errorf("id-range: %w", err)
		}
	}
	p.owners = dirs.Owners(p.log)
	return dirs.UseIDs(ctx, r)
}

// idRange is the IDs that workspaces of this server can have. Only root can change to
// them and give files to them, in a user namespace to those that it maps. In a cluster,
// files must have the numbers with which pods run.
func (p *portal) idRange() rules.IDRange {
	r := p.cfg.IDRange
	if os.Geteuid() != 0 || p.cfg.Runtime != "local" && namespaced() || r.Empty() {
		return rules.IDRange{}
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		maps, err := readIDMap(file)
		if err != nil {
			return rules.IDRange{}
		}
		r.Last = min(r.Last, lastMapped(maps, r.First))
	}
	if r.Last <= r.First {
		return rules.IDRange{}
	}
	return r
}

// namespaced reports whether IDs of this process are not those of the machine.
func namespaced() bool {
	maps, err := readIDMap("/proc/self/uid_map")
	return err == nil && !slices.Equal(maps, []idMap{{0, 0, 1<<32 - 1}})
}

// idTable is a file of this machine with IDs that are in use.
type idTable struct {
	file       string
	id, count  int // columns, counted from 0; without a count there is one ID
	describing string
}

var idTables = []idTable{
	{"/etc/passwd", 2, -1, "user"}, {"/etc/group", 2, -1, "group"},
	{"/etc/subuid", 1, 2, "subordinate users of"}, {"/etc/subgid", 1, 2, "subordinate groups of"},
}

// checkIDs refuses a range with IDs that the machine uses: files of members would be
// theirs as well.
func checkIDs(r rules.IDRange, sandbox int64, tables []idTable) error {
	if r.Contains(sandbox) {
		return fmt.Errorf("must not contain the sandbox-uid %d", sandbox)
	}
	for _, t := range tables {
		if err := t.check(r); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (t idTable) check(r rules.IDRange) error {
	f, err := os.Open(t.file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		columns := strings.Split(lines.Text(), ":")
		if len(columns) <= max(t.id, t.count) {
			continue
		}
		first, err := strconv.ParseInt(columns[t.id], 10, 64)
		if err != nil {
			continue
		}
		last := first
		if t.count > 0 {
			n, err := strconv.ParseInt(columns[t.count], 10, 64)
			if err != nil {
				continue
			}
			last += n - 1
		}
		if first <= r.Last && r.First <= last {
			return fmt.Errorf("%d-%d has IDs of the %s %s, in %s", r.First, r.Last, t.describing, columns[0], t.file)
		}
	}
	return lines.Err()
}

// notSeparated says what members share of the kernel, and why; "" if nothing.
func (p *portal) notSeparated(user uint32) string {
	why := "id-range is not set"
	switch {
	case !p.idRange().Empty() && namespaced():
		return "inotify: all workspaces together have the instances of this server's user (fs.inotify.max_user_instances)"
	case !p.idRange().Empty():
		return ""
	case p.cfg.IDRange.Empty():
	case os.Geteuid() == 0:
		why = "the user namespace of this server does not map the IDs of id-range"
	default:
		why = fmt.Sprintf("without root, subordinate IDs are needed: %v", p.noNamespace)
	}
	return fmt.Sprintf("members: all workspaces run as user %d, so they share that user's limits of the kernel, such as inotify instances and keys; %s", user, why)
}
