package cluster

import (
	"fmt"
	"os"
	"strings"
)

// refuseMounts fails when something is mounted below dir: the cluster's own
// mounts are private, and removing the directory would remove the files there.
func refuseMounts(dir string) error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if mounted := mountsBelow(string(text), dir); len(mounted) > 0 {
		return fmt.Errorf("unmount first what somebody mounted there: %s", strings.Join(mounted, ", "))
	}
	return nil
}

// unescape decodes the kernel's escapes of white space.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountsBelow lists the mount points below dir.
func mountsBelow(mountinfo, dir string) (points []string) {
	for line := range strings.Lines(mountinfo) {
		if field := strings.Fields(line); len(field) > 4 {
			if point := unescape.Replace(field[4]); strings.HasPrefix(point, dir+"/") {
				points = append(points, point)
			}
		}
	}
	return points
}
