package history

import (
	"reflect"
	"strings"
	"testing"

	"weir/pool/placement"
)

func TestParseMachines(t *testing.T) {
	for text, want := range map[string]Machines{
		"h100:8":              {h100, 81_920, 8, 1},
		"H200:8x4":            {"NVIDIA H200 141GB HBM3e", 144_384, 8, 4},
		"b200: 1 X 1000":      {"NVIDIA B200 180GB HBM3e", 184_320, 1, 1000},
		"NVIDIA L40S/46068:4": {"NVIDIA L40S", 46_068, 4, 1},
		"a/b:c / 1:64x2":      {"a/b:c", 1, 64, 2},
		" a100 :2":            {"Mock NVIDIA A100-SXM4-40GB", 40_960, 2, 1},
	} {
		if got, err := ParseMachines(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                           `"" is not MODEL:GPUS`,
		"h100":                       "such as h100:8x4",
		"h300:8":                     `no GPU model "h300": there are a100, h100, h200, b200; write another as NAME/MEMORYMIB`,
		":8":                         `no GPU model ""`,
		"h100:":                      `"" is not a number of GPUs`,
		"h100:8x":                    `"" is not a number of machines`,
		"h100:8x4x2":                 `"4x2" is not a number of machines`,
		"h100:0":                     "0 GPUs in a machine: from 1 to 64",
		"h100:65":                    "65 GPUs in a machine: from 1 to 64",
		"h100:-1":                    "-1 GPUs in a machine",
		"h100:8x1001":                "1001 machines: from 1 to 1000",
		"h100:999999999999999999999": "is not a number of GPUs",
		"L40S/:4":                    `"" is not a GPU's memory`,
		"L40S/0:4":                   `"0" is not a GPU's memory`,
		"/46068:4":                   "has no name",
	} {
		if got, err := ParseMachines(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v, want an error with %q", text, got, err, says)
		}
	}
}

func TestNodes(t *testing.T) {
	nodes := Machines{h100, 1000, 2, 2}.Nodes()
	ids := map[int64]bool{}
	for _, n := range nodes {
		for _, d := range n.Devices {
			ids[d.ID] = true
		}
	}
	if len(nodes) != 2 || nodes[1].ID != 2 || len(ids) != 4 {
		t.Errorf("%+v", nodes)
	}
	totals := placement.Capacity(placement.Snapshot{Nodes: nodes})
	if totals.FreeCores != 400 || totals.FreeMemoryMiB != 4000 {
		t.Errorf("%+v", totals)
	}
}

func TestJoin(t *testing.T) {
	instances := placement.Node{ID: 1, Devices: []placement.Device{{ID: 1, Parent: 9}, {ID: 2, Parent: 9}, {ID: 9, Peers: []int64{1, 7}}}}
	old := []placement.Node{{ID: 5, Devices: []placement.Device{{ID: 70, Parent: 80}}}}
	joined := Join(old, []placement.Node{instances, instances})
	want := []placement.Node{old[0],
		{ID: 6, Devices: []placement.Device{{ID: 81, Parent: 82, Peers: []int64{}}, {ID: 83, Parent: 82, Peers: []int64{}}, {ID: 82, Peers: []int64{81, 84}}}},
		{ID: 7, Devices: []placement.Device{{ID: 85, Parent: 86, Peers: []int64{}}, {ID: 87, Parent: 86, Peers: []int64{}}, {ID: 86, Peers: []int64{85, 88}}}}}
	if !reflect.DeepEqual(joined, want) {
		t.Errorf("got  %+v\nwant %+v", joined, want)
	}
	if instances.Devices[0].ID != 1 || instances.Devices[2].Peers[1] != 7 {
		t.Errorf("the argument has changed: %+v", instances)
	}
}
