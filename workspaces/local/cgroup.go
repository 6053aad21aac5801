package local

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// maxProcesses is the maximum of processes and threads of a workspace.
const maxProcesses = 1024

// cgroup is the directory of a workspace by controller; under cgroup v2, it is the
// same for all.
type cgroup map[string]string

// cgroupName returns a name that is unique across run directories and owners.
func cgroupName(dir string, owner runtime.Owner) string {
	sum := sha256.Sum256([]byte(filepath.Dir(dir) + owner.String()))
	return fmt.Sprintf("%x-%s", sum[:4], filepath.Base(dir))
}

// confine limits a process and its descendants, and returns for each resource
// whether the limit is enforced.
func confine(name string, pid int, spec runtime.Spec) (cgroup, []models.Limit) {
	group := cgroup{}
	mounts := cgroupMounts()
	limit := func(controller string, wanted bool, how models.Text, values func(v2 bool) []setting) models.Limit {
		if !wanted {
			return models.Limit{Resource: controller, How: models.Say("no limit set")}
		}
		err := group.limit(mounts, controller, name, pid, values)
		if err != nil {
			return models.Limit{Resource: controller, How: describeError(err)}
		}
		return models.Limit{Resource: controller, Enforced: true, How: how}
	}
	limits := []models.Limit{
		limit("cpu", spec.CPU > 0, models.Say("%s CPU, enforced by the system (cgroup)", models.Quantity("cpu_milli", spec.CPU)),
			cpuSettings(spec.CPU)),
		limit("memory", spec.Memory > 0, models.Say("%s, enforced by the system (cgroup)", models.FormatMiB(spec.Memory)),
			memorySettings(spec.Memory)),
	}
	pids := limit("pids", true, models.Text{}, func(bool) []setting {
		return []setting{{file: "pids.max", value: strconv.Itoa(maxProcesses)}}
	})
	// Version 1 counts CPU time by a controller of its own. Without it, the time is not known.
	_ = group.limit(mounts, "cpuacct", name, pid, func(bool) []setting { return nil })
	if !pids.Enforced { // the limit is no parameter of a launch, so only its absence is said
		limits = append(limits, pids)
	}
	return group, limits
}

// setting is a file of a cgroup and its value.
type setting struct {
	file, value string
	optional    bool // not every kernel has it
}

func cpuSettings(milli int64) func(bool) []setting {
	const period = 100_000 // microseconds
	quota := max(milli*period/1000, 1000)
	return func(v2 bool) []setting {
		if v2 {
			return []setting{{file: "cpu.max", value: fmt.Sprintf("%d %d", quota, period)}}
		}
		return []setting{{file: "cpu.cfs_period_us", value: strconv.Itoa(period)},
			{file: "cpu.cfs_quota_us", value: strconv.FormatInt(quota, 10)}}
	}
}

func memorySettings(mib int64) func(bool) []setting {
	bytes := strconv.FormatInt(mib<<20, 10)
	return func(v2 bool) []setting {
		if v2 {
			return []setting{{file: "memory.max", value: bytes}, {file: "memory.swap.max", value: "0", optional: true}}
		}
		return []setting{{file: "memory.limit_in_bytes", value: bytes},
			{file: "memory.memsw.limit_in_bytes", value: bytes, optional: true}}
	}
}

// limit creates the group under a controller, applies the settings and moves the
// process into it.
func (g cgroup) limit(mounts []cgroupMount, controller, name string, pid int, values func(bool) []setting) error {
	dir, v2, err := makeGroup(mounts, controller, name)
	if err != nil {
		return err
	}
	g[controller] = dir
	for _, s := range values(v2) {
		err := writeFile(filepath.Join(dir, s.file), s.value)
		if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return writeFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
}

func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // never creates
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

// cgroupMount is one mounted hierarchy.
type cgroupMount struct {
	dir         string
	v2          bool
	controllers []string
	own         string // this process's group below dir, under v2
}

func cgroupMounts() []cgroupMount {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil
	}
	defer f.Close()
	var mounts []cgroupMount
	for scan := bufio.NewScanner(f); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) < 4 {
			continue
		}
		switch fields[2] {
		case "cgroup":
			mounts = append(mounts, cgroupMount{dir: fields[1], controllers: strings.Split(fields[3], ",")})
		case "cgroup2":
			b, _ := os.ReadFile(filepath.Join(fields[1], "cgroup.controllers"))
			mounts = append(mounts, cgroupMount{dir: fields[1], v2: true,
				controllers: strings.Fields(string(b)), own: ownGroup()})
		}
	}
	return mounts
}

// ownGroup returns this process's group under cgroup v2.
func ownGroup() string {
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return "/"
}

var errNoController = errors.New("the system has no cgroup controller for this resource")

// makeGroup creates the group in the first possible place: the root of the hierarchy
// or, for a service with a delegated part of it, beside or below its own group.
func makeGroup(mounts []cgroupMount, controller, name string) (dir string, v2 bool, err error) {
	i := slices.IndexFunc(mounts, func(m cgroupMount) bool { return slices.Contains(m.controllers, controller) })
	if i < 0 {
		return "", false, errNoController
	}
	m := mounts[i]
	bases := []string{m.dir}
	if m.v2 {
		bases = append(bases, filepath.Join(m.dir, filepath.Dir(m.own)), filepath.Join(m.dir, m.own))
	}
	for _, base := range bases {
		dir = filepath.Join(base, "weir", name)
		if err = m.makeBelow(base, dir, controller); err == nil {
			return dir, m.v2, nil
		}
	}
	return "", false, err
}

func (m cgroupMount) makeBelow(base, dir, controller string) error {
	if m.v2 {
		if err := enable(base, controller); err != nil {
			return err
		}
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	if m.v2 {
		if err := enable(parent, controller); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755)
}

// enable delegates a controller of cgroup v2 to a group's children.
func enable(dir, controller string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	b, err := os.ReadFile(file)
	if err != nil || slices.Contains(strings.Fields(string(b)), controller) {
		return err
	}
	return writeFile(file, "+"+controller)
}

// describeError describes why a limit could not be set.
func describeError(err error) models.Text {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return models.Say("no permission to create a cgroup")
	case errors.Is(err, unix.EBUSY):
		return models.Say("the system does not allow creating a cgroup next to running processes")
	case errors.Is(err, errNoController):
		return models.Say("the system has no cgroup controller for this resource")
	}
	return models.Say("the system reported an error: %s", err.Error())
}

// join moves another process into the group. That one does not end with it if this fails.
func (g cgroup) join(pid int) {
	for _, dir := range g {
		_ = writeFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)) // the limits of the workspace hold without it
	}
}

// outOfMemory returns the number of processes killed for exceeding the memory limit.
func (g cgroup) outOfMemory() int {
	dir := g["memory"]
	if dir == "" {
		return 0
	}
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		b, _ := os.ReadFile(filepath.Join(dir, file))
		for line := range strings.Lines(string(b)) {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(count))
				return n
			}
		}
	}
	return 0
}

// cpuTime is the CPU time that the processes of the group have used; 0 if it is not counted.
func (g cgroup) cpuTime() time.Duration {
	for _, dir := range g {
		if b, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage")); err == nil { // of version 1, in nanoseconds
			n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			return time.Duration(n)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		for line := range strings.Lines(string(b)) {
			if used, ok := strings.CutPrefix(line, "usage_usec "); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(used), 10, 64)
				return time.Duration(n) * time.Microsecond
			}
		}
	}
	return 0
}

// remove deletes the group. It fails while a process of it still exits.
func (g cgroup) remove() error {
	for _, dir := range g {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
