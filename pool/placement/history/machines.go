package history

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/pool/placement"
)

// Bounds of what one text may ask for.
const (
	MaxGPUs     = 64   // in one machine
	MaxMachines = 1000 // alike
)

// Model is a GPU that machines can be written with.
type Model struct {
	Word      string // how it is written: "h100"
	Name      string // as its driver names it
	MemoryMiB int64
}

// Models are the GPUs that are known by a word, with what the driver reports
// of them. Others are written with their name and memory.
var Models = []Model{
	{"a100", "Mock NVIDIA A100-SXM4-40GB", 40_960},
	{"h100", "NVIDIA H100 80GB HBM3", 81_920},
	{"h200", "NVIDIA H200 141GB HBM3e", 144_384},
	{"b200", "NVIDIA B200 180GB HBM3e", 184_320},
}

// Machines is a number of machines that are alike.
type Machines struct {
	Model     string // as the driver names it
	MemoryMiB int64  // of one GPU
	GPUs      int    // of one machine
	Count     int
}

// ErrFormat is inside the error of [ParseMachines] for a text without a number
// of GPUs.
var ErrFormat = errors.New("not MODEL:GPUS or MODEL:GPUSxMACHINES, such as h100:8x4")

// ParseMachines reads MODEL:GPUS or MODEL:GPUSxMACHINES, where MODEL is the
// word of one of [Models] in any case, or NAME/MEMORYMIB of any other:
// “h100:8x4”, “NVIDIA L40S/46068:4”.
func ParseMachines(text string) (m Machines, err error) {
	colon := strings.LastIndex(text, ":")
	if colon < 0 {
		return m, fmt.Errorf("%q is %w", text, ErrFormat)
	}
	if m.Model, m.MemoryMiB, err = parseModel(strings.TrimSpace(text[:colon])); err != nil {
		return m, err
	}
	gpus, count, several := strings.Cut(strings.ToLower(text[colon+1:]), "x")
	if m.GPUs, err = parseCount(gpus, MaxGPUs, "GPUs in a machine"); err != nil {
		return m, err
	}
	m.Count = 1
	if several {
		m.Count, err = parseCount(count, MaxMachines, "machines")
	}
	return m, err
}

func parseModel(text string) (name string, memoryMiB int64, err error) {
	i := slices.IndexFunc(Models, func(m Model) bool { return strings.EqualFold(m.Word, text) })
	if i >= 0 {
		return Models[i].Name, Models[i].MemoryMiB, nil
	}
	slash := strings.LastIndex(text, "/")
	if slash < 0 {
		words := make([]string, len(Models))
		for i, m := range Models {
			words[i] = m.Word
		}
		return "", 0, fmt.Errorf("there is no GPU model %q: there are %s; write another as NAME/MEMORYMIB, such as NVIDIA L40S/46068",
			text, strings.Join(words, ", "))
	}
	if name = strings.TrimSpace(text[:slash]); name == "" {
		return "", 0, fmt.Errorf("%q has no name before the /", text)
	}
	memoryMiB, err = strconv.ParseInt(strings.TrimSpace(text[slash+1:]), 10, 64)
	if err != nil || memoryMiB < 1 || memoryMiB > 1<<30 {
		return "", 0, fmt.Errorf("%q is not a GPU's memory in MiB, from 1 to %d", text[slash+1:], 1<<30)
	}
	return name, memoryMiB, nil
}

func parseCount(text string, most int, what string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of %s", text, what)
	}
	if n < 1 || n > most {
		return 0, fmt.Errorf("%d %s: from 1 to %d are possible", n, what, most)
	}
	return n, nil
}

// Nodes is the machines, empty and accepting, with ids from 1.
func (m Machines) Nodes() []placement.Node {
	nodes := make([]placement.Node, m.Count)
	for i := range nodes {
		n := placement.Node{ID: int64(i + 1), Name: fmt.Sprintf("%s %d", m.Model, i+1), Accepting: true}
		for j := range m.GPUs {
			n.Devices = append(n.Devices, placement.Device{ID: int64(i*m.GPUs + j + 1), Index: j, Model: m.Model,
				MemoryMiB: m.MemoryMiB, Healthy: true})
		}
		nodes[i] = n
	}
	return nodes
}

// Join puts nodes after others and gives them, their devices and the parents
// of instances numbers of their own.
func Join(nodes, extra []placement.Node) []placement.Node {
	var node, device int64
	for _, n := range nodes {
		node = max(node, n.ID)
		for _, d := range n.Devices {
			device = max(device, d.ID, d.Parent)
		}
	}
	joined := slices.Clone(nodes)
	for _, n := range extra {
		node++
		n.ID = node
		n.Devices = slices.Clone(n.Devices)
		numbers := map[int64]int64{0: 0}
		renumber := func(id int64) int64 {
			if _, known := numbers[id]; !known {
				device++
				numbers[id] = device
			}
			return numbers[id]
		}
		for i := range n.Devices {
			d := &n.Devices[i]
			d.ID, d.Parent = renumber(d.ID), renumber(d.Parent)
			peers := make([]int64, len(d.Peers))
			for k, peer := range d.Peers {
				peers[k] = renumber(peer)
			}
			d.Peers = peers
		}
		joined = append(joined, n)
	}
	return joined
}
