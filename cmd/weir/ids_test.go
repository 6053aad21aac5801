package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/storage/rules"
)

func TestIDsOfTheMachineAreRefused(t *testing.T) {
	r := rules.IDRange{First: 100_000, Last: 199_999}
	for content, refused := range map[string]bool{
		"root:x:0:0\nann:x:99999:1": false, "ann:x:100000:1": true, "ann:x:199999:1": true, "ann:x:200000:100000": false,
		"broken\n:::\nann:x:150000:1": true,
	} {
		checkTable(t, r, idTable{file: "passwd", id: 2, count: -1, describing: "user"}, content, refused)
	}
	for content, refused := range map[string]bool{
		"ann:1:99999": false, "ann:1:100000": true, "ann:199999:1": true, "ann:200000:65536": false, "ann:120000:65536": true, "ann:0:300000": true, "ann:150000": false,
	} {
		checkTable(t, r, idTable{file: "subuid", id: 1, count: 2, describing: "subordinate users of"}, content, refused)
	}
	if err := checkIDs(r, 100_001, nil); err == nil {
		t.Error("the sandbox-uid is in the range")
	}
	if err := checkIDs(r, 62_000, []idTable{{file: filepath.Join(t.TempDir(), "absent")}}); err != nil {
		t.Error(err)
	}
}

func checkTable(t *testing.T, r rules.IDRange, table idTable, content string, refused bool) {
	t.Helper()
	table.file = filepath.Join(t.TempDir(), table.file)
	if err := os.WriteFile(table.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	err := checkIDs(r, 62_000, []idTable{table})
	if (err != nil) != refused || refused && !strings.Contains(err.Error(), "ann, in "+table.file) {
		t.Errorf("%q: %v", content, err)
	}
}
