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

// EndLeftovers kills what processes of attempts are left: an operator dies with its runner, but
// not what it has started itself. It returns how many there were. Processes of other users, and
// those that have changed their environment, are not seen.
func EndLeftovers(attempts []string) (ended int) {
	if len(attempts) == 0 {
		return 0
	}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range files {
		environ, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			id, is := bytes.CutPrefix(variable, []byte(attemptVariable+"="))
			if is && slices.Contains(attempts, string(id)) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				ended++
			}
		}
	}
	return ended
}
