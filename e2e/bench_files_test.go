package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const manyFiles = 10_000

// BenchmarkManySmallFiles measures what 10,000 files of 1 KiB take: dropped onto the file
// manager as one folder, beside cp of the same with sync; and how long the page of a
// directory of so many takes until it can be used, and until it is read to its end.
//
//	go test -run '^$' -bench ManySmallFiles -benchtime 1x -timeout 30m ./e2e
func BenchmarkManySmallFiles(b *testing.B) {
	content := make([]byte, 1024)
	files := map[string]string{}
	for i := range manyFiles {
		files[fmt.Sprintf("many/%02d/%04d.bin", i/100, i)] = string(content)
		files[fmt.Sprintf("flat/%05d.bin", i)] = ""
	}
	local := tree(b, files)
	chromium := startChromium(b)
	s := newServer(b, options{args: quiet})
	team := s.sharing("wang")
	dir, page := sharedDir(team.Project)
	t := chromium.person(b, s.url).tab()
	t.signIn(team.Members[0].Email, password)
	for i := range b.N {
		t.goTo(page)
		t.until("the page", `document.querySelector("#file-manager")`)
		start := time.Now()
		t.drops(filepath.Join(local, "many"))
		for done := false; !done; {
			if time.Since(start) > 25*time.Minute {
				b.Fatal(eval[string](t, `document.querySelector("#transfers").innerText`))
			}
			done = eval[bool](t, `new Promise((r) => setTimeout(() => r(document.querySelector("#transfer-words").textContent === "Files uploaded: `+strconv.Itoa(manyFiles)+`"), 200))`)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/drop")
		start = time.Now()
		copySynced(b, filepath.Join(local, "many"), s.onDisk(fmt.Sprint(dir, "/copy-", i)))
		b.ReportMetric(time.Since(start).Seconds(), "s/cp")
		copySynced(b, filepath.Join(local, "flat"), s.onDisk(fmt.Sprint(dir, "/flat-", i)))
		start = time.Now()
		t.goTo(fmt.Sprint(page, "/flat-", i))
		t.until("the first files", `document.querySelector(".files[role=grid] tbody tr")`)
		b.ReportMetric(time.Since(start).Seconds(), "s/open")
		t.until("the last files", `(() => { document.scrollingElement.scrollTo(0, 1e9); return document.querySelectorAll(".files tbody tr").length === `+strconv.Itoa(manyFiles)+`; })()`)
		b.ReportMetric(time.Since(start).Seconds(), "s/end")
	}
}

func copySynced(b *testing.B, from, to string) {
	b.Helper()
	if out, err := exec.Command("sh", "-c", `cp -r "$0" "$1" && sync -f "$1"`, from, to).CombinedOutput(); err != nil {
		b.Fatal(string(out), err)
	}
}
