package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// attemptVariable marks the processes of an attempt in their environment.
const attemptVariable = "WEIR_GRAPH_ATTEMPT"

// maxPasses bounds how often leftovers are looked for.
const maxPasses = 1000

// EndLeftovers kills what processes of attempts are left: an operator dies with its runner, but
// not what it has started itself. It looks until it finds no other ones, because those that it
// kills may just have started some. It returns how many there were. Processes of other users,
// and those that have changed their environment, are not seen.
func EndLeftovers(attempts []string) int {
	killed := map[int]bool{}
	for range maxPasses {
		before := len(killed)
		if killLeftovers(attempts, killed); len(killed) == before {
			break
		}
	}
	return len(killed)
}

// killLeftovers kills the processes of attempts that there are, and adds them to those killed.
func killLeftovers(attempts []string, killed map[int]bool) {
	if len(attempts) == 0 {
		return
	}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range files {
		environ, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() || killed[pid] {
			continue
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			id, is := bytes.CutPrefix(variable, []byte(attemptVariable+"="))
			if is && slices.Contains(attempts, string(id)) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed[pid] = true
			}
		}
	}
}
